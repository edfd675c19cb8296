"""The run folder: lock, store, row digests, recorded calls, queries. Must stay light."""
