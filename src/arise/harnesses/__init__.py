"""Agent harnesses as data, and what installs and runs them: each drives the policy through the endpoint."""
