"""The first call to an endpoint, before anything is spent: what it can do, and what the command needs."""
