"""Conversation formats of models: `Format` of `arise.ports` for any chat template, and for known model families."""
