"""Programs that run in the environment of a training library; the driver imports only their message types."""
