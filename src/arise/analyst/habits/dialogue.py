"""Habits of words: what the agent says to a user, assumes and claims; H10 to H14."""

import re
from collections.abc import Iterator, Mapping

from arise.analyst.acts import Op
from arise.analyst.habits.scene import FILE_NAME, Habit, HabitFinding, Scene, absent
from arise.analyst.tool_kinds import RECORD, kind_of, verb_of
from arise.types import StopReason

_ASSUMES = re.compile(
    r"\b(?:let'?s|let us|we(?:'ll| will| can| could| may| might)?|i(?:'ll| will| can| would|'m going to)?"
    r"|assistant should)"
    r" (?:just |simply |also |now )?(?:assume|suppose|pretend|imagine|simulate|guess|estimate|approximate"
    r"|hypothesi[sz]e)\b"
    r"|\b(?:assuming|supposing|presumably)\b[^.\n]{0,80}"
    r"|\bhypothetical(?:ly)?\b|\b(?:simulated?|dummy|fictional|made[- ]up|fabricated|placeholder|sample|mock) "
    r"(?:data|values?|results?|responses?|numbers?|prices?|list|dataset|information|output)\b"
    r"|\bfor (?:demonstration|illustration|illustrative|the sake of)\b|\b(?:best|educated|rough) guess\b"
    r"|\b(?:based on|from|using) (?:my|general|common|prior|existing|internal) (?:knowledge|memory"
    r"|understanding|training)\b"
    r"|\b(?:as|to the best) of my (?:last |latest )?(?:knowledge|update|training)\b|\bI (?:recall|remember) (?:that )?",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"\n|[.;:]\s|\Z")
_ADDRESS = re.compile(r"\w+://\S+")
_THING = re.compile(
    r"`([^`\n]*[a-z]_?[A-Z][^`\n]*|[^`\n]*[A-Za-z][^`\n]*[_./(][^`\n]*)`"
    r"|(?<![\w`:/])(/?[A-Za-z][\w./-]*\.[A-Za-z]\w{0,4}|/[A-Za-z][\w./-]+|[A-Za-z]\w*_\w+)(?![\w`])"
)
"""Code in backticks that is more than a word, paths and file names, names with an underscore; no addresses."""
_GIVES_UP = re.compile(
    r"\b(?:i(?:'m| am)|we(?:'re| are)|it (?:is|was)|being) (?:currently )?(?:unable|not able|impossible) to\b"
    r"|\b(?:i|we) (?:cannot|can'?t|could not|couldn'?t|was not able to|were not able to)\b"
    r"|\b(?:unable|impossible) to (?:determine|find|access|retrieve|complete|verify|locate|proceed|answer)\b"
    r"|\b(?:transferr(?:ing|ed)|(?:will|'ll|must|need to|have to|going to) transfer) "
    r"(?:you|the (?:user|customer)|this)? ?(?:to|over to) (?:a |another )?(?:human|live|agent|representative)"
    r"|\bcannot be (?:determined|found|answered)\b|\bno (?:answer|solution) (?:could be |was )?found\b",
    re.IGNORECASE,
)
_HANDS_OVER = re.compile(r"transfer.*human|escalat|give_?up|hand_?off|handover", re.IGNORECASE)
_ASKS = re.compile(
    r"\?\s*(?:\*+|\)|\"|'|_)*\s*$|\b(?:let me know (?:if|how|what|which|whether)|would you like(?: me)? to"
    r"|please (?:provide|specify|clarify|"
    r"confirm|share)|could you (?:please )?(?:provide|clarify|confirm|share)|shall i)\b",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"[^.!?\n]*\b(?:(?:any|some)thing else|(?:any )?(?:further|other|more|additional) (?:assistance|help|questions?"
    r"|concerns?)|any questions)\b[^.!?\n]*[.!?]*",
    re.IGNORECASE,
)
"""A polite last sentence: it holds up nothing."""
_ASSENT = re.compile(
    r"\b(?:yes|yeah|yep|sure|ok(?:ay)?|confirm(?:ed)?|correct|proceed|go ahead|please do|do it|agreed?"
    r"|sounds good|that works|"
    r"that'?s (?:right|fine|correct)|perfect|absolutely|definitely)\b",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"(?=[\w#@.+-]*\d)[\w#@.+-]{5,60}")
_ID_FIELD = re.compile(r"(?:^|_)(?:id|ids|number|code|key|email|username|zip)s?$", re.IGNORECASE)
_CHANGES = (Op.WRITE, Op.DELETE)


def _cut(match: re.Match[str]) -> str:
    """Return the sentence around a match, from its text, at most 200 characters."""
    text = match.string
    before = text[max(0, match.start() - 120) : match.start()]
    skipped = max(before.rfind("\n") + 1, before.rfind(". ") + 2 if ". " in before else 0)
    if not skipped and len(before) < match.start():
        skipped = before.find(" ") + 1  # no half word
    start = match.start() - len(before) + skipped
    end = min((e for e in (text.find("\n", match.end()), text.find(". ", match.end())) if e >= 0), default=len(text))
    return text[start : min(end, start + 200)].strip()


def _assumed(scene: Scene) -> HabitFinding | None:
    """Find words that replace a look with an assumption, a guess or invented data.

    An agent with a shell also assumes while it reasons about code, and makes up data for a test. There the words must
    name a file or a name in code that nothing in the whole attempt showed.
    """
    if not scene.said:
        return None
    hits = [(turn, m) for turn, text in scene.said for m in _ASSUMES.finditer(text) if not _is_cited(m)]
    about: dict[int, tuple[re.Match[str], str]] = {}
    for turn, match in hits:
        name = _never_seen(match, scene) if scene.shell else ""
        if name or not scene.shell:
            about.setdefault(turn, (match, name))
    if not about:
        return absent()
    turn, (match, name) = next(iter(about.items()))
    subject = f" about {name}, which it never looked at" if name else ""
    return HabitFinding(True, "assumed", f"turn {turn} goes on from an assumption{subject}", tuple(about), _cut(match))


def _is_cited(match: re.Match[str]) -> bool:
    """Return whether a match stands within quotation marks: somebody else's words."""
    line = match.string[match.string.rfind("\n", 0, match.start()) + 1 : match.start()]
    return line.count('"') % 2 == 1 and '"' in match.string[match.end() :].partition("\n")[0]


def _never_seen(match: re.Match[str], scene: Scene) -> str:
    """Return the first thing that the rest of the sentence names and that no call and no result has anything of."""
    end = _SENTENCE_END.search(match.string, match.end())
    clause = _ADDRESS.sub(" ", match.string[match.start() : end.start() if end else len(match.string)][:300])
    for found in _THING.finditer(clause):
        name = str(found[1] or found[2])
        last = re.split(r"[/(\[ ]", name.rstrip("/()"))[-1 if "/" in name else 0]
        parts = (last,) if FILE_NAME.search(last) else (last, last.rpartition(".")[2])
        if len(last) > 3 and not any(scene.shows(part) for part in parts if len(part) > 2):
            return name
    return ""


def _gave_up(scene: Scene) -> HabitFinding | None:
    """Find an end at which the agent says that it cannot, or hands the task over."""
    if scene.trajectory.stop is not StopReason.FINISHED or not scene.trajectory.turns:
        return None
    count = len(scene.trajectory.turns)
    for number in range(count, max(0, count - 2), -1):
        if call := next((c for c in scene.trajectory.turns[number - 1].calls if _HANDS_OVER.search(c.name)), None):
            return HabitFinding(True, "handed", f"turn {number} handed the task over with {call.name}", (number,))
    turn, text = scene.closing
    if turn >= count - 1 and (match := _GIVES_UP.search(text)):
        return HabitFinding(True, "gave_up", f"turn {turn} ends by saying what it cannot do", (turn,), _cut(match))
    return absent()


def _asked_back(scene: Scene) -> HabitFinding | None:
    """Find a final question in attempts in which no user ever answered."""
    turn, text = scene.closing
    if scene.trajectory.stop is not StopReason.FINISHED or not text or scene.person:
        return None
    last = _COURTESY.sub("", text.strip()[-600:]).strip()[-300:]
    if turn < len(scene.trajectory.turns) or not (match := _ASKS.search(last)):
        return absent()
    line = last[last.rfind("\n", 0, match.start()) + 1 :].strip()
    return HabitFinding(
        True, "asked", f"turn {turn} ends with a question that nobody is there to answer", (turn,), line
    )


def _records(scene: Scene) -> Iterator[tuple[int, str, Mapping[str, object]]]:
    for number, turn in enumerate(scene.trajectory.turns, start=1):
        for call in turn.calls:
            if kind_of(call.name) == RECORD:
                yield number, call.name, call.arguments


def _ids(arguments: Mapping[str, object]) -> Iterator[str]:
    """Yield the arguments that identify something: by the field's name and a digit in the value."""
    for name, value in arguments.items():
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, str) and _ID_FIELD.search(name) and _IDENTIFIER.fullmatch(item):
                yield item


def _ungrounded(scene: Scene) -> HabitFinding | None:
    """Find identifiers in calls to records that were not mentioned anywhere before."""
    wanted = [(turn, list(_ids(given))) for turn, _, given in _records(scene)]
    if not any(ids for _, ids in wanted):
        return None
    known = [scene.task.instruction, scene.given]
    heard = 0
    for turn, ids in wanted:
        for earlier in scene.trajectory.turns[heard : turn - 1]:
            known += [seen.text for seen in earlier.observations]
        heard = max(heard, turn - 1)
        before = "\n".join(known)
        known = [before]
        for item in ids:
            if item.strip("#").lower() not in before.lower():
                return HabitFinding(True, "unseen", f"turn {turn} used {item}, which nothing had shown", (turn,), item)
    return absent()


def _unasked(scene: Scene) -> HabitFinding | None:
    """Find changes to records without prior consent of the user, in conversations with a user."""
    changes = [
        (turn, name) for turn, name, _ in _records(scene) if verb_of(name) in _CHANGES and not _HANDS_OVER.search(name)
    ]
    if not changes or not scene.person:
        return None
    for turn, name in changes:
        replies = [text for at, text in scene.person if at < turn]
        if not replies or not _ASSENT.search("\n".join(replies[-2:])):
            said = f"turn {turn} called {name} before the user had agreed to it"
            return HabitFinding(True, "unasked", said, (turn,))
    return absent()


HABITS = (
    Habit("H10", _assumed),
    Habit("H11", _gave_up),
    Habit("H12", _asked_back),
    Habit("H13", _ungrounded),
    Habit("H14", _unasked),
)
