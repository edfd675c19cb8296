"""C sources of other packages, compiled on this machine when it has a compiler."""
