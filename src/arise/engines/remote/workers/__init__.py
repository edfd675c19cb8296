"""Programs that run in the environment of a training library; the driver imports nothing of them but message types."""
