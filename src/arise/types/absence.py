"""Kinds of missing verdicts: a short word for the screen and for metrics, from the reason that a judgment records."""

REFUSED, UNANSWERED, QUARANTINED, WEAK = "refused", "no answer", "quarantined", "weak"
CUT_OFF, UNREADABLE, SPLIT, WITHHELD, INTERNAL = "cut off", "no usable answer", "votes differ", "withheld", "internal"

KINDS = (REFUSED, UNANSWERED, QUARANTINED, WEAK, CUT_OFF, UNREADABLE, SPLIT, WITHHELD, INTERNAL)
_STARTS = {
    REFUSED: ("refused", "denied"),
    UNANSWERED: ("unavailable", "rate_limited", "breaker_open", "not judged"),
    QUARANTINED: ("quarantined",),
    WEAK: ("weak",),
    CUT_OFF: ("cut off",),
    SPLIT: ("votes differ",),
    WITHHELD: ("withheld",),
    INTERNAL: ("internal",),
}


def kind_of_absence(reason: str) -> str:
    """Return the kind of a recorded reason; whatever names no other cause counts as no usable answer."""
    for kind, starts in _STARTS.items():
        if reason.startswith(starts):
            return kind
    return UNREADABLE
