"""The embedded world: unlimited Harbor tasks of multi-turn file work, and demonstrations to warm-start a model.

It knows nothing of rubrics, skills or samplers: behaviours must be discovered from traces.
"""
