"""What runs inside a sandbox, under whatever Python 3.9 or later is there; outside only tests import it."""
