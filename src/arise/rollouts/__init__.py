"""Running the agent: rollouts, and the verifier that says whether one succeeded."""
