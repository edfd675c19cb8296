"""The judge: what it is asked about a rollout, how its reply is applied, and the control questions in each request."""
