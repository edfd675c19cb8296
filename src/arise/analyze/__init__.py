"""What an agent keeps getting wrong, from trajectories that any harness left behind.

Readers turn files into trajectories with triaged outcomes; the rest counts behaviours in failures and in passes.
"""
