"""Trajectory: one rollout or held-out attempt turn by turn, in pages, with its verdicts and their reasons."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from arise.report.dashboard.attempt_view import AttemptView, open_rollout
from arise.report.dashboard.charts import Figure, Link, Table
from arise.report.dashboard.charts.palette import BLUE, RED
from arise.report.dashboard.charts.split import Part, advantage_split, mask_strip
from arise.report.dashboard.pages.page import Asked, Fact, Page
from arise.report.dashboard.pages.turns import (
    CHARS_OF_TEXT,
    TURNS_ON_PAGE,
    Pin,
    Shown,
    piece_of,
    texts_of,
    turns_from,
)
from arise.run.numbering import rollout_name
from arise.run.pool_rows import VerdictRow
from arise.run.rows import RolloutRow
from arise.text.numbers import amount, signed
from arise.types import DiagnosticItem, Judgment, Turn

ORDER = ("fail", "pass", None, "not_applicable")
"""Verdicts on the page: what is wrong comes first."""
SIGNAL = ", observable via "
_NAMED_TURN = re.compile(r"\bturns? (\d+)")


@dataclass(frozen=True)
class Judged:
    """A verdict with the rubric it belongs to, its reason, and links to the turns that the reason names."""

    row: VerdictRow
    criterion: str
    href: str
    reason: str
    turns: list[Link]


def build(asked: Asked, rollout_id: str, turn: int = 1, part: int | None = None) -> Page:
    """Build the page from `turn` on; `part` selects a piece of one long turn."""
    view = open_rollout(asked, rollout_id)
    row, stored = view.row, view.stored
    turn = max(1, min(turn, max(1, stored.turn_count)))
    judgment = stored.rollout.judgment
    if part is None:
        turns = _page(view, turn)
        after = turns[-1].number + 1 if turns else 1
    else:
        turns = [piece_of(stored.turns(turn - 1, 1)[0], turn, part)] if stored.turn_count else []
        after = turn + 1
    content = {
        "row": row,
        "evaluation": view.evaluation,
        "instruction": view.instruction[:CHARS_OF_TEXT],
        "verifier_output": stored.rollout.verifier_output,
        "turns": turns,
        "turn_count": stored.turn_count,
        "trajectory": stored.rollout.trajectory,
        "first": turn,
        "part": part,
        "next_part": part is not None and any(text.cut for shown in turns for text in shown.texts),
        "earlier": asked.links.trajectory(rollout_id, max(1, turn - TURNS_ON_PAGE)) if turn > 1 else "",
        "later": asked.links.trajectory(rollout_id, after) if after <= stored.turn_count else "",
        "verdicts": _verdicts(asked, view),
        "judgment": judgment,
        "diagnostics": _diagnostics(judgment),
        "skills": _skills(asked, view),
        "siblings": [(sibling, asked.links.trajectory(sibling.id)) for sibling in view.siblings],
        "masks": [(mask, sum(length for _, length in mask.spans), mask_strip(mask)) for mask in stored.masks],
        "slot": None if view.evaluation else _slot(asked, row),
    }
    figures = [] if view.evaluation else [_advantages(asked, row, view.siblings)]
    section = "evaluation" if view.evaluation else "rollouts"
    title = f"Attempt {view.evaluation}" if view.evaluation else "Rollout"
    return Page("trajectory.html", f"{title} {rollout_name(rollout_id)}", section, _facts(view), figures, content)


def _facts(view: AttemptView) -> list[Fact]:
    row, stored = view.row, view.stored
    outcome = {None: "no reward", 0: "failed", 1: "passed"}[row.success]
    tokens = sum(mask.tokens for mask in stored.masks)
    reward = "" if row.reward is None else f"reward {row.reward:g}"
    facts = [
        Fact(outcome, "by the verifier", row.fault or stored.rollout.reason or reward),
        Fact(row.stop.replace("_", " "), "ended by"),
        Fact(amount(stored.turn_count), "turns"),
    ]
    if view.evaluation:
        return [*facts, Fact("none", "skills shown", "held-out attempts never see one")]
    return [
        *facts,
        Fact(amount(row.generated_tokens), "tokens trained on", f"of {amount(tokens)}; the rest is masked"),
        Fact(signed(row.advantage), "advantage"),
    ]


def _page(view: AttemptView, first: int) -> list[Shown]:
    """Return as many turns as fit on a page, each with its trained tokens and the remarks about it."""
    stored = view.stored
    spans = [length for mask in stored.masks for _, length in mask.spans]
    trained = spans if len(spans) == stored.turn_count else []
    turns = stored.turns(first - 1, TURNS_ON_PAGE)
    return [
        replace(shown, trained=trained[shown.number - 1] if trained else None, pins=_pins(shown.number, turn, view))
        for shown, turn in zip(turns_from(turns, first), turns, strict=False)
    ]


def _pins(number: int, turn: Turn, view: AttemptView) -> list[Pin]:
    """Return the verdicts and remarks of the judge that name this turn or quote it."""
    cited = [row for row in view.verdicts if row.verdict and str(number) in _NAMED_TURN.findall(row.reason)]
    pins = [Pin(row.verdict or "", row.rubric_id, row.reason) for row in cited]
    judgment = view.stored.rollout.judgment
    if judgment is None:
        return pins
    pins += [Pin("", "judge", note) for note in judgment.notes if str(number) in _NAMED_TURN.findall(note)]
    diagnostic = judgment.diagnostic
    if diagnostic:
        everything = "\n".join(text for _, text, _ in texts_of(turn))
        for item in (*diagnostic.uncovered_issues, *diagnostic.positive_uncovered_strategies):
            said = (item.text, *item.observable_signals)
            named = any(str(number) in _NAMED_TURN.findall(words) for words in said)
            if named or any(len(signal) > 3 and signal in everything for signal in item.observable_signals):
                pins.append(Pin("", "judge", sentence(item)))
    return pins


def sentence(item: DiagnosticItem) -> str:
    """Return the first sentence of an item, without what shows it."""
    return f"{item.text.partition(SIGNAL)[0].rstrip('.')}."


def _diagnostics(judgment: Judgment | None) -> list[tuple[str, str, str]]:
    """Return (kind, sentence, what shows it) of everything seen that no rubric asks for."""
    if judgment is None or judgment.diagnostic is None:
        return []
    found = judgment.diagnostic
    kinds = (("gap", found.uncovered_issues), ("strategy", found.positive_uncovered_strategies))
    return [(kind, sentence(item), item.text.partition(SIGNAL)[2]) for kind, items in kinds for item in items]


def _verdicts(asked: Asked, view: AttemptView) -> list[Judged]:
    rubrics = {pair.rubric.id: pair.rubric for pair in asked.run.pairs()}
    found = []
    for row in sorted(view.verdicts, key=lambda row: (ORDER.index(row.verdict), row.rubric_id)):
        rubric = rubrics.get(row.rubric_id)
        reason = row.reason
        if row.verdict == "not_applicable" and rubric:
            reason = reason or f"no occasion; it applies where: {rubric.applicability_condition}"
        turns = [
            Link(f"turn {n}", asked.links.trajectory(view.row.id, int(n)))
            for n in dict.fromkeys(_NAMED_TURN.findall(row.reason))
            if int(n) <= view.stored.turn_count
        ]
        criterion = rubric.criteria_text if rubric else ""
        found.append(Judged(row, criterion, asked.links.rubric(row.rubric_id), reason, turns))
    return found


def _skills(asked: Asked, view: AttemptView) -> list[dict[str, Any]]:
    found, stored = [], view.stored
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
        f"Both parts are normalised within the group; rubrics weigh {weight:g}. "
        "Negative advantages are discouraged, positive ones reinforced.",
        (("from the task", BLUE), ("from rubrics", RED)),
    )
