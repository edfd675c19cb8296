"""Rollouts of the agent, and the verifier that grades them."""
