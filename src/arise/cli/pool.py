"""`arise pool`: the history of a run's rubric-skill pairs. Heavy imports stay inside the commands."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arise.cli.output import AsJson, RunFolder, one_message, say, say_json, table
from arise.text.numbers import counted_rate, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arise.run.pool_rows import Event, PairLife, VerdictCount
    from arise.run.reader import RunReader

NAMED = 6
app = typer.Typer(help="Inspect and export a run's rubric-skill pairs.", no_args_is_help=True)

At = Annotated[int | None, typer.Option("--at", min=1, help="As it was after this iteration; the last by default.")]
RubricId = Annotated[str, typer.Argument(help="A rubric's id, as `arise pool ls` shows it.", metavar="RUBRIC")]


@app.command(epilog="Example: arise pool ls runs/first --at 20")
def ls(
    run: RunFolder,
    at: At = None,
    everything: Annotated[bool, typer.Option("--all", help="Retired pairs too.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the pairs of the pool: pass rates, whether the skill is shown or stuck, and the criterion."""
    with one_message(), _reader(run) as reader:
        last = _last(reader, at)
        rows = []
        for pair in reader.pairs():
            then = pair.after(last)
            if pair.born_at > last or (then.status == "retired" and not everything):
                continue
            counts = [c for c in reader.verdict_counts(pair.rubric.id) if c.k <= last]
            rows.append(_facts(then, counts))
        if as_json:
            say_json(rows)
            return
        if not rows:
            say(f"no pair in the pool after iteration {at or reader.committed()}")
            return
        head = ["rubric", "status", "since", "rev", "pass rate", "unguided", "capability", "criterion"]
        say(table([head, *map(_cells, rows)], right=frozenset({2, 3})))


@app.command(epilog="Example: arise pool show runs/first r003")
def show(run: RunFolder, rubric: RubricId, as_json: AsJson = False) -> None:
    """Show one pair: its criterion, its current skill, and its history with the counts behind each change."""
    with one_message(), _reader(run) as reader:
        pair = _pair(reader, rubric)
        counts = reader.verdict_counts(rubric)
        if as_json:
            from arise.types.codec import to_json

            events = [event._asdict() | {"iteration": event.iteration} for event in pair.events]
            skills = [skill._asdict() | {"iteration": skill.iteration} for skill in pair.skills]
            facts = {"rubric": to_json(pair.rubric), "events": events, "skills": skills}
            say_json(_facts(pair, counts) | facts)
            return
        rubric_text, newest = pair.rubric, pair.skills[-1:]
        lines = [
            f"{rubric_text.id}  {pair.standing}  {rubric_text.capability.value}, {rubric_text.issue_tag}",
            f"criterion   {rubric_text.criteria_text}",
            f"applies     {rubric_text.applicability_condition}",
            f"rule        {rubric_text.rule_text}",
            f"evidence    {_evidence('seen missing', rubric_text.issue_refs)}",
            f"            {_evidence('seen done', rubric_text.contrast_refs)}",
            "",
            *(f"after {event.iteration:>4}  {event.words:<19} {_both(event)}{_note(event)}" for event in pair.events),
            "",
            *(f"skill, revision {s.revision}, from iteration {s.iteration + 1}:\n{s.text}" for s in newest),
        ]
        say("\n".join(lines))


@app.command(epilog="Example: arise pool diff runs/first r003")
def diff(run: RunFolder, rubric: RubricId, as_json: AsJson = False) -> None:
    """Show how a skill's text changed from revision to revision, with the pass rate before and after."""
    import difflib

    with one_message(), _reader(run) as reader:
        pair = _pair(reader, rubric)
        counts = reader.verdict_counts(rubric)
        changes: list[dict[str, Any]] = []
        for old, new in zip(pair.skills, pair.skills[1:], strict=False):
            until = next((skill.k for skill in pair.skills if skill.revision == new.revision + 1), None)
            before, after = _rates(counts, old.k, new.k), _rates(counts, new.k, until)
            names = f"revision {old.revision}", f"revision {new.revision}"
            text = list(difflib.unified_diff(old.text.splitlines(), new.text.splitlines(), *names, lineterm=""))
            rates = {"before": before[0], "after": after[0], "unguided_before": before[1], "unguided_after": after[1]}
            changes.append({"iteration": new.iteration, **rates, "diff": text})
        if as_json:
            say_json(changes)
            return
        if not changes:
            say(f"{rubric}: the skill was never rewritten")
        for change in changes:
            passed = f"pass rate {percent(change['before'])} before, {percent(change['after'])} after"
            alone = f"unguided {percent(change['unguided_before'])} and {percent(change['unguided_after'])}"
            say("\n".join([f"refined after iteration {change['iteration']}, {passed} ({alone})", *change["diff"], ""]))


@app.command(epilog="Example: arise pool export runs/first --out lifecycle.json")
def export(
    run: RunFolder,
    out: Annotated[Path | None, typer.Option("--out", help="The file to write; RUN/lifecycle.json by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write every pair ever created, every status over time and every verdict count as one JSON file."""
    with one_message():
        import json

        from arise.run import lifecycle_file

        written = lifecycle_file.export(run, out)
        pairs = json.loads(written.read_text(encoding="utf-8"))["pairs"]
        retired = sum(pair["status"] == "retired" for pair in pairs)
        if as_json:
            say_json({"file": str(written), "pairs": len(pairs), "retired": retired})
        else:
            say(f"{written}: {len(pairs)} pairs, {retired} retired")


def _reader(run: Path) -> "RunReader":
    from arise.run.reader import RunReader

    return RunReader.open(run)


def _last(reader: "RunReader", at: int | None) -> int:
    """Return k of iteration `at`, or of the last committed iteration if `at` is None or beyond it."""
    from arise.run.numbering import k_of

    committed = reader.committed()
    return k_of(committed if at is None else min(at, committed))


def _pair(reader: "RunReader", rubric: str) -> "PairLife":
    from arise.errors import AriseError, Exit

    pair = reader.pair(rubric)
    if pair is None:
        known = ", ".join(found.rubric.id for found in reader.pairs()) or "none yet"
        raise AriseError(
            "pool", Exit.CONFIG, f"no rubric {rubric!r}", f"rubrics of this run: {known}", "name one of them"
        )
    return pair


def _facts(pair: "PairLife", counts: "list[VerdictCount]") -> dict[str, Any]:
    """Return a pair with the verdict counts of its last judged iteration, for all and for unguided rollouts."""
    from arise.run.facts.verdicts import guided_counts

    counted = [count for count in counts if count.evaluations]
    recent = guided_counts(count for count in counted if count.k == counted[-1].k)
    return {
        "rubric": pair.rubric.id,
        "status": pair.status,
        "stuck": pair.standing.stuck,
        "born": pair.born,
        "retired": pair.retired,
        "revision": pair.skills[-1].revision if pair.skills else 0,
        "passes": recent.all.passes,
        "evaluations": recent.all.evaluations,
        "unguided_passes": recent.unguided.passes,
        "unguided_evaluations": recent.unguided.evaluations,
        "capability": pair.rubric.capability.value,
        "criterion": pair.rubric.criteria_text,
    }


def _cells(facts: dict[str, Any]) -> list[str]:
    every = counted_rate(facts["passes"], facts["evaluations"])
    alone = counted_rate(facts["unguided_passes"], facts["unguided_evaluations"])
    numbers = [str(facts["born"]), str(facts["revision"])]
    status = f"{facts['status']}, stuck" if facts["stuck"] else facts["status"]
    return [facts["rubric"], status, *numbers, every, alone, facts["capability"], facts["criterion"]]


def _evidence(how: str, refs: "Sequence[str]") -> str:
    more = f" and {len(refs) - NAMED} more, see --json" if len(refs) > NAMED else ""
    return f"{how} in {len(refs)} attempt{'s' * (len(refs) != 1)}{': ' if refs else ''}{', '.join(refs[:NAMED])}{more}"


def _both(event: "Event") -> str:
    """Return the pass rate of an event's window, and that of unguided rollouts if some were guided."""
    every = counted_rate(event.passes, event.evaluations) if event.evaluations else ""
    if not event.guided.evaluations:
        return every
    return f"{every}, unguided {counted_rate(event.unguided_passes, event.unguided_evaluations)}"


def _note(event: "Event") -> str:
    """Return the note of an event; skip the criterion of a new pair, which is printed above."""
    return f"  {event.note}" if event.note and event.kind not in ("born", "imported") else ""


def _rates(counts: "list[VerdictCount]", after: int, until: int | None) -> list[float | None]:
    """Return the pass rates of all and of unguided rollouts in the iterations after `after` up to `until`."""
    from arise.method.pass_rate import pass_rate
    from arise.run.facts.verdicts import guided_counts

    found = guided_counts(count for count in counts if count.k > after and (until is None or count.k <= until))
    return [pass_rate(found.all), pass_rate(found.unguided)]
