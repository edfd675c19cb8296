"""Compile the C sources of other packages on this machine if it has a compiler."""
