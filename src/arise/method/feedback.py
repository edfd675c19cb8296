"""What B_k keeps of the interaction: environment feedback, use of skills, excerpts of failing turns.

Every text is truncated to a fixed size, without the task's id and without invisible characters.
"""

from collections.abc import Mapping, Sequence

from arise.types import ExcerptTurn, Feedback, ShownSkill, SkillUse, Trajectory, Turn, Verdict

ERRORS, ERROR_CHARS = 3, 160
TURNS, TURN_CHARS = 2, 240
_USE = {
    Verdict.PASS: SkillUse.FOLLOWED,
    Verdict.FAIL: SkillUse.NOT_FOLLOWED,
    Verdict.NOT_APPLICABLE: SkillUse.NO_OCCASION,
}


def feedback(trajectory: Trajectory) -> Feedback:
    """How the rollout ended, how many calls failed, and the first few different messages of those."""
    seen = [observation for turn in trajectory.turns for observation in turn.observations]
    failed = [observation.text for observation in seen if observation.error]
    lines = dict.fromkeys(_short(_last_line(text), ERROR_CHARS, trajectory.task_id) for text in failed)
    return Feedback(trajectory.stop, len(trajectory.turns), len(failed), tuple(filter(None, lines))[:ERRORS])


def skill_use(shown: Sequence[ShownSkill], verdicts: Mapping[str, Verdict]) -> tuple[SkillUse, ...]:
    """For each shown skill whether the rollout did what it asks for, by the verdict on its own rubric."""
    given = [verdicts.get(skill.rubric_id) for skill in shown]
    return tuple(SkillUse.NOT_JUDGED if verdict is None else _USE[verdict] for verdict in given)


def opened(trajectory: Trajectory, provided: Sequence[str]) -> tuple[str, ...]:
    """Return the skills of the task's environment that the agent opened: those that one of its calls names."""
    said = [str(value) for turn in trajectory.turns for call in turn.calls for value in call.arguments.values()]
    return tuple(name for name in provided if any(name in text for text in said))


def excerpt(trajectory: Trajectory) -> tuple[ExcerptTurn, ...]:
    """Return the last turns, and the last ones in which a call failed: at most 2 x `TURNS`, in order."""
    turns = trajectory.turns
    failed = [number for number, turn in enumerate(turns) if _failed(turn)]
    chosen = sorted({*failed[-TURNS:], *range(max(0, len(turns) - TURNS), len(turns))})
    return tuple(
        ExcerptTurn(
            number + 1,
            _short(_action(turns[number]), TURN_CHARS, trajectory.task_id),
            _short("\n".join(_ends(seen.text) for seen in turns[number].observations), TURN_CHARS, trajectory.task_id),
            _failed(turns[number]),
        )
        for number in chosen
    )


def _failed(turn: Turn) -> bool:
    return any(observation.error for observation in turn.observations)


def _action(turn: Turn) -> str:
    """Return what the agent did: its calls, or its words where it made none."""
    calls = [f"{call.name}: {' '.join(_ends(str(value)) for value in call.arguments.values())}" for call in turn.calls]
    return "; ".join(calls) or turn.text


def _last_line(text: str) -> str:
    return text.rstrip()[-4 * ERROR_CHARS :].rpartition("\n")[2]


def _ends(text: str) -> str:
    """Drop the middle of a long text without copying the whole text."""
    return text if len(text) <= 8 * TURN_CHARS else f"{text[: 4 * TURN_CHARS]} [cut] {text[-4 * TURN_CHARS :]}"


def _short(text: str, limit: int, task_id: str) -> str:
    """One line of at most `limit` characters plus the mark of a cut, its middle left out."""
    words = "".join(c if c.isprintable() else " " for c in _ends(text)).split()
    plain = " ".join(_anonymous(word, task_id) for word in words)
    return plain if len(plain) <= limit else f"{plain[: limit // 2]} [cut] {plain[len(plain) - limit // 2 :]}"


def _anonymous(word: str, task_id: str) -> str:
    """Remove the task's id from a word; an id of a few letters only where it stands alone."""
    if task_id and (len(task_id) > 3 or word.strip(".,:;'\"()[]") == task_id):
        return word.replace(task_id, "[task]")
    return word
