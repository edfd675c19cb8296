"""What a run will need before anything is spent: memory, time, tokens, dollars and disk, with every assumption named.

Pure arithmetic and one simulation; must never start a process, load a model or call a network.
"""
