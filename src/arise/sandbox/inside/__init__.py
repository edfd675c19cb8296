"""Code that runs inside a sandbox, under any Python 3.9 or later; outside, only tests import it."""
