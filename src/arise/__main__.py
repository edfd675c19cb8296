"""`python -m arise`."""

from arise.cli.main import main

main()
