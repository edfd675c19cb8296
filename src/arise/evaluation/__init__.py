"""Evaluation: attempts, pass rates and their spread, guidance, retention."""
