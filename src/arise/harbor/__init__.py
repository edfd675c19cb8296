"""Harbor out of process: a worker with its own Python runs trials and environments of Harbor for ARISE."""
