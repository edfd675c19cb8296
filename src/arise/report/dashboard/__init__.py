"""The local web dashboard of runs: server-rendered pages over the read-only run store."""
