"""Sampling on vLLM: a client for its token interface, and a fleet of servers that all hold one policy version."""
