"""Trajectory: one rollout turn by turn, in pages, with its verdicts and diagnostics."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from arise.report.dashboard.charts import Figure, Link, Table
from arise.report.dashboard.charts.palette import BLUE, RED
from arise.report.dashboard.charts.split import Part, advantage_split, mask_strip
from arise.report.dashboard.pages.page import Asked, Fact, NotFound, Page
from arise.run.chunks import StoredRollout
from arise.run.numbering import rollout_name
from arise.run.pool_rows import VerdictRow
from arise.run.rows import RolloutRow
from arise.text.numbers import amount, signed
from arise.types import Judgment, Turn

TURNS_ON_PAGE = 40
CHARS_ON_PAGE, CHARS_OF_TEXT = 120_000, 4_000
_NAMED_TURN = re.compile(r"\bturns? (\d+)")


@dataclass(frozen=True)
class Text:
    """The part of a text that a page shows."""

    kind: str
    text: str
    length: int
    error: bool = False

    @property
    def cut(self) -> bool:
        return len(self.text) < self.length


@dataclass(frozen=True)
class Shown:
    """A turn on the page: its texts, its trained tokens, and the notes attached to it."""

    number: int
    texts: list[Text]
    trained: int | None
    pins: list[str] = field(default_factory=list)


def build(asked: Asked, rollout_id: str, turn: int = 1, part: int | None = None) -> Page:
    """Build the page from `turn` on; `part` selects a piece of one long turn."""
    row, stored = asked.run.rollout(rollout_id), asked.run.trajectory(rollout_id)
    if row is None or stored is None:
        raise NotFound(f"no rollout {rollout_id!r} in this run")
    turn = max(1, min(turn, max(1, stored.turn_count)))
    judgment = stored.rollout.judgment
    if part is None:
        turns = _page(stored, turn, judgment)
        after = turns[-1].number + 1 if turns else 1
    else:
        turns = [_whole(stored.turns(turn - 1, 1)[0], turn, part)] if stored.turn_count else []
        after = turn + 1
    siblings, task = asked.run.siblings(row), asked.run.task(row.task_id)
    content = {
        "row": row,
        "instruction": task.instruction[:CHARS_OF_TEXT] if task else "",
        "verifier_output": stored.rollout.verifier_output,
        "turns": turns,
        "turn_count": stored.turn_count,
        "trajectory": stored.rollout.trajectory,
        "first": turn,
        "part": part,
        "next_part": part is not None and any(text.cut for shown in turns for text in shown.texts),
        "earlier": asked.links.trajectory(rollout_id, max(1, turn - TURNS_ON_PAGE)) if turn > 1 else "",
        "later": asked.links.trajectory(rollout_id, after) if after <= stored.turn_count else "",
        "verdicts": _verdicts(asked, rollout_id),
        "judgment": judgment,
        "skills": _skills(asked, stored),
        "siblings": [(sibling, asked.links.trajectory(sibling.id)) for sibling in siblings],
        "masks": [(mask, sum(length for _, length in mask.spans), mask_strip(mask)) for mask in stored.masks],
        "slot": _slot(asked, row),
    }
    figures = [_advantages(asked, row, siblings)]
    return Page(
        "trajectory.html", f"Rollout {rollout_name(rollout_id)}", "rollouts", _facts(row, stored), figures, content
    )


def _facts(row: RolloutRow, stored: StoredRollout) -> list[Fact]:
    outcome = {None: "no reward", 0: "failed", 1: "passed"}[row.success]
    tokens = sum(mask.tokens for mask in stored.masks)
    reward = "" if row.reward is None else f"reward {row.reward:g}"
    return [
        Fact(outcome, "by the verifier", row.fault or stored.rollout.reason or reward),
        Fact(row.stop.replace("_", " "), "ended by"),
        Fact(amount(stored.turn_count), "turns"),
        Fact(amount(row.generated_tokens), "tokens trained on", f"of {amount(tokens)}; the rest is masked"),
        Fact(signed(row.advantage), "advantage"),
    ]


def _page(stored: StoredRollout, first: int, judgment: Judgment | None) -> list[Shown]:
    """Return as many turns as fit on a page; a long text is cut and links to the rest."""
    spans = [length for mask in stored.masks for _, length in mask.spans]
    trained = spans if len(spans) == stored.turn_count else []
    found: list[Shown] = []
    size = 0
    for n, turn in enumerate(stored.turns(first - 1, TURNS_ON_PAGE), start=first):
        texts = [Text(kind, text[:CHARS_OF_TEXT], len(text), error) for kind, text, error in _texts(turn)]
        size += sum(len(text.text) for text in texts)
        if found and size > CHARS_ON_PAGE:
            break
        found.append(Shown(n, texts, trained[n - 1] if trained else None, _pins(n, turn, judgment)))
    return found


def _whole(turn: Turn, number: int, part: int) -> Shown:
    texts = _texts(turn)
    share = CHARS_ON_PAGE // len(texts)
    start = part * share
    pieces = [
        Text(kind, text[start : start + share], len(text) - start, error)
        for kind, text, error in texts
        if len(text) > start
    ]
    return Shown(number, pieces, None)


def _texts(turn: Turn) -> list[tuple[str, str, bool]]:
    """Return (kind, text, error) in chronological order."""
    found = [("reasoning", turn.reasoning, False)] if turn.reasoning else []
    found.append(("agent", turn.text, False))
    for call in turn.calls:
        given = str(call.arguments.get("command") if set(call.arguments) == {"command"} else call.arguments)
        if given not in turn.text:
            found.append((f"call {call.name}", given, False))
    return [*found, *(("observation", o.text, o.error) for o in turn.observations)]


def _pins(number: int, turn: Turn, judgment: Judgment | None) -> list[str]:
    """Return the judge's remarks that name this turn or quote it."""
    if judgment is None:
        return []
    pins = [note for note in judgment.notes if str(number) in _NAMED_TURN.findall(note)]
    diagnostic = judgment.diagnostic
    if diagnostic:
        everything = "\n".join(text for _, text, _ in _texts(turn))
        for item in (*diagnostic.uncovered_issues, *diagnostic.positive_uncovered_strategies):
            said = (item.text, *item.observable_signals)
            named = any(str(number) in _NAMED_TURN.findall(words) for words in said)
            if named or any(len(signal) > 3 and signal in everything for signal in item.observable_signals):
                pins.append(item.text)
    return pins


def _verdicts(asked: Asked, rollout_id: str) -> list[tuple[VerdictRow, str, str]]:
    criteria = {pair.rubric.id: pair.rubric.criteria_text for pair in asked.run.pairs()}
    rows = asked.run.verdicts_of(rollout_id)
    return [(row, criteria.get(row.rubric_id, ""), asked.links.rubric(row.rubric_id)) for row in rows]


def _skills(asked: Asked, stored: StoredRollout) -> list[dict[str, Any]]:
    found = []
    for skill in stored.rollout.trajectory.shown_skills:
        pair = asked.run.pair(skill.rubric_id)
        texts = {revision.revision: revision.text for revision in pair.skills} if pair else {}
        text = texts.get(skill.revision, "")
        found.append(
            {
                "rubric_id": skill.rubric_id,
                "revision": skill.revision,
                "text": text,
                "href": asked.links.rubric(skill.rubric_id),
                "in_prompt": bool(text) and text in stored.rollout.trajectory.system_prompt,
            }
        )
    return found


def _slot(asked: Asked, row: RolloutRow) -> Link | None:
    for group in asked.run.groups(k=row.k, task_id=row.task_id):
        return Link(
            f"slot {group.slot + 1} of iteration {row.iteration}", asked.links.sampler(row.iteration, group.slot)
        )
    return None


def _advantages(asked: Asked, row: RolloutRow, siblings: Sequence[RolloutRow]) -> Figure:
    weight = float(asked.run.config().get("credit", {}).get("rubric_weight", 0.3))
    parts = []
    for sibling in siblings:
        name, href = f"attempt {sibling.id.rpartition('/')[2]}", asked.links.trajectory(sibling.id)
        rubric = None if sibling.rubric_advantage is None else weight * sibling.rubric_advantage
        task = None if sibling.advantage is None or rubric is None else sibling.advantage - rubric
        parts.append(Part(name, href, sibling.id == row.id, task, rubric))
    rows = [
        (
            Link(rollout_name(s.id), asked.links.trajectory(s.id)),
            s.success,
            s.reward,
            s.advantage,
            s.task_advantage,
            s.rubric_advantage,
        )
        for s in siblings
    ]
    return Figure(
        "advantages",
        "Its group: where the advantage comes from",
        advantage_split(parts),
        Table(("rollout", "success", "reward", "advantage", "task part", "rubric part"), rows),
        f"Both parts are normalised within the group; rubrics weigh {weight:g}. Left is discouraged, right reinforced.",
        (("from the task", BLUE), ("from rubrics", RED)),
    )
