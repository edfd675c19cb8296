"""`python -m arise`."""

from arise.cli import main

main()
