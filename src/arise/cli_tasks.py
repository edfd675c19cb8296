"""`arise tasks`: task types for a folder of tasks. Heavy imports live inside the command."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arise.cli_output import AsJson, say
from arise.cli_session import OPENAI, BaseUrl, Cost, KeyEnv, MaxUsd, Model, session
from arise.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Callable

    from arise.models.annotation_report import Agreement, AnnotationReport
    from arise.models.annotator import Annotated as AnnotatedTasks
    from arise.models.annotator import TaskCard
    from arise.tasks import TaskDir

app = typer.Typer(name="tasks", help="Look at a folder of tasks.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(help="A folder of task directories.")]
RECORD_FILE = ".tags.calls.db"


@app.callback()
def _root() -> None:
    pass


@app.command(epilog="Example: arise tasks tag corpus/ --model glm-5.2 --base-url https://api.z.ai/v1 --repeat 2")
def tag(
    folder: Folder,
    model: Model = "gpt-4o-mini",
    base_url: BaseUrl = OPENAI,
    api_key_env: KeyEnv = "OPENAI_API_KEY",
    repeat: Annotated[int, typer.Option(min=1, max=2, help="2 tags everything twice and measures agreement.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report only, leave tags.json as it is.")] = False,
    max_usd: MaxUsd = 0.0,
    as_json: AsJson = False,
) -> None:
    """Assign task types by a language model, in two passes; a stopped run goes on where it was."""
    import asyncio

    from arise.models.annotation_report import report_of
    from arise.models.stops import RunStop
    from arise.tasks import read_corpus

    corpus = read_corpus(folder)
    if not corpus.tasks:
        say("\n".join(map(str, corpus.problems)), err=True)
        raise typer.Exit(Exit.TASKS)
    cards = [card_of(found) for found in corpus.tasks]
    try:
        found, agreement, cost = asyncio.run(
            _tag(cards, model, base_url, api_key_env, repeat, folder / RECORD_FILE, max_usd)
        )
    except RunStop as stop:
        say(str(stop), err=True)
        raise typer.Exit(stop.exit_code) from None
    if not dry_run:
        _write(folder, found)
    known = {task.task.id: task.task.task_types for task in corpus.tasks if task.task.task_types}
    report = report_of(found, agreement, known)
    say(_as_json(report, cost) if as_json else _as_text(report, cost, len(corpus.problems)))


def card_of(found: "TaskDir") -> "TaskCard":
    """What an annotator may know: the instruction, names of skills, paths in the environment; no tests, no solution."""
    from arise.models.annotator import TaskCard
    from arise.tasks import BUILD_FILES

    root = found.environment
    paths = sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()) if root else []
    visible = tuple(path for path in paths if path not in BUILD_FILES)
    return TaskCard(found.task.id, found.task.instruction, found.task.provided_skills, visible)


async def _tag(
    cards: "list[TaskCard]",
    model: str,
    base_url: str,
    api_key_env: str,
    repeat: int,
    record: Path,
    max_usd: float,
) -> "tuple[AnnotatedTasks, Agreement | None, Cost]":
    from arise.config_models import Annotation, Calls, Endpoint
    from arise.models.annotation_report import agreement_of
    from arise.models.annotator import Annotator
    from arise.tasks import task_types

    # A person waits: an endpoint that is down ends the command, and the next one goes on where this one was.
    endpoint = Endpoint(model=model, base_url=base_url, api_key_env=api_key_env)
    settings = Annotation(endpoint=endpoint, calls=Calls(when_down="stop"))
    async with session(settings.endpoint, settings.calls, "annotation", record, max_usd) as opened:
        runs = []
        for number in range(repeat):
            progress = _progress(len(cards), f"run {number + 1} of {repeat}")
            annotator = Annotator(opened.client, settings, task_types(), f"run {number}", progress)
            runs.append(await annotator.annotate(cards))
        agreement = agreement_of(runs[0], runs[1]) if repeat == 2 else None
        return runs[0], agreement, opened.cost()


def _progress(total: int, name: str) -> "Callable[[int], None]":
    """Every tenth of the first pass a line for the person who waits, beside what the command prints."""
    told = 0

    def progress(done: int) -> None:
        nonlocal told
        if total >= 40 and done * 10 // total > told:
            told = done * 10 // total
            typer.echo(f"{name}: {done:,} of {total:,} tasks", err=True)

    return progress


def _write(folder: Path, found: "AnnotatedTasks") -> None:
    """tags.json, which task loading reads; tasks without an annotation keep what they had."""
    import json
    import os

    from arise.tasks.corpus import TAGS_FILE

    path = folder / TAGS_FILE
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    tags = known | {key: list(annotation.task_types) for key, annotation in found.annotations.items()}
    draft = path.with_suffix(".json.new")
    draft.write_text(json.dumps(tags, indent=2, sort_keys=True) + "\n", "utf-8")
    os.replace(draft, path)


def _as_json(report: "AnnotationReport", cost: Cost) -> str:
    import json
    from dataclasses import asdict

    return json.dumps(asdict(report) | {"cost": asdict(cost)}, indent=2)


def _as_text(report: "AnnotationReport", cost: Cost, unusable: int) -> str:
    share = report.covered / report.tasks if report.tasks else 0.0
    lines = [
        f"tasks     {report.tasks}" + (f" ({unusable} problems in other task folders)" if unusable else ""),
        f"covered   {report.covered} ({share:.1%}), {report.second_pass} of them in the second pass",
        f"types     {report.types_used} used, {report.tags_per_task:.2f} a task, "
        f"the largest in {report.largest_share:.1%} of tasks",
        f"open      {report.uncovered} without a type, {report.absent} without an annotation, "
        f"{len(report.low_confidence)} of low confidence",
    ]
    if report.agreement:
        same = report.agreement
        lines.append(f"agreement {same.equal:.1%} equal sets over {same.tasks} tasks, mean overlap {same.overlap:.1%}")
    if report.against_known:
        same = report.against_known
        lines.append(f"before    {same.tasks} had types: {same.equal:.1%} equal sets, mean overlap {same.overlap:.1%}")
    lines.append(f"cost      {cost}")
    lines += ["", "most frequent types", *(f"  {count:>5}  {name}" for name, count in report.types[:12])]
    if report.processes:
        lines += ["", "processes no type covers"]
        lines += [f"  {count:>5}  {name}: {text[:80]}" for name, count, text in report.processes[:8]]
    if report.absent_reasons:
        lines += ["", "no annotation because"]
        lines += [f"  {count:>5}  {reason[:90]}" for reason, count in report.absent_reasons]
    return "\n".join(lines)
