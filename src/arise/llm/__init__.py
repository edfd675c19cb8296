"""Language models behind an endpoint; imports point down.

From the bottom: `prompts` and `wire` (the only parser), `client`, `judge`, `check`, `first_call`, and beside each
other `reflection`, `annotation` and `agents`.
"""
