"""What the process that commands are forked from has imported: everything a run needs, nothing started."""

import transformers.models.llama.modeling_llama  # noqa: F401

import arise.cli.app
import arise.compose.evaluations
import arise.compose.training  # noqa: F401
