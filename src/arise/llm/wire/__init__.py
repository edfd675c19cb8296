"""The only parser of model output: strict, line by line, item by item.

Model output becomes values or reasons, never an exception. A verdict must be literally present exactly once. Nothing is
repaired.
"""

from arise.llm.wire.annotations import Annotation, AnnotationReply, Uncovered, parse_annotations
from arise.llm.wire.diagnostics import DiagnosticReply, parse_diagnostics
from arise.llm.wire.pairs import PairReply, parse_duplicates, parse_pairs, parse_rewrite
from arise.llm.wire.verdicts import VerdictReply, parse_verdicts

__all__ = [
    "Annotation",
    "AnnotationReply",
    "DiagnosticReply",
    "PairReply",
    "Uncovered",
    "VerdictReply",
    "parse_annotations",
    "parse_diagnostics",
    "parse_duplicates",
    "parse_pairs",
    "parse_rewrite",
    "parse_verdicts",
]
