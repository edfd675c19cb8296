"""Find what an agent repeatedly gets wrong, from the trajectories of any harness.

Readers convert files to trajectories with triaged outcomes; the other modules compare behaviours in failures and
passes.
"""
