"""Talking to language models: prompts, the client, the only parser of their output, judge, reflector and annotator."""
