"""The endpoint: any agent harness drives the policy over a standard API while every token is recorded as sampled."""
