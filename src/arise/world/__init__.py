"""The embedded world: unlimited Harbor tasks of multi-turn file work, and demonstrations to start a model from.

It knows nothing of rubrics, skills or samplers: what there is to learn must be discovered from traces.
"""
