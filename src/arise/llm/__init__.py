"""Language models behind an endpoint.

The packages, lowest layer first: `prompts` and `wire` (the only parser of model output), `client`, `judge`, `check`,
`first_call`; then `reflection`, `annotation` and `agents`, which do not import each other.
"""
