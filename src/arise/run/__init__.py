"""The run folder: lock, store, row digests, recorded calls, queries. Imports must stay light."""
