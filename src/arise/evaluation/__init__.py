"""How good an agent is: attempts, pass rates, their spread."""
