"""`arise tasks`: check a folder of tasks, or annotate task types. Heavy imports stay inside the commands."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arise.cli import corpus
from arise.cli.output import AsJson, one_message, say, say_json
from arise.cli.session import OPENAI, BaseUrl, Cost, KeyEnv, MaxUsd, Model, PriceOption, price_of, session
from arise.errors import Exit
from arise.text.numbers import percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from arise.config.llm import EndpointConfig
    from arise.llm.annotation.annotation_report import AnnotationReport, TagAgreement
    from arise.llm.annotation.annotator import Annotated as AnnotatedTasks
    from arise.llm.annotation.annotator import TaskCard
    from arise.rollouts.oracle import Trials
    from arise.sandbox.choose import Kind
    from arise.tasks import TaskProblem
    from arise.types import TaskSpec

app = typer.Typer(name="tasks", help="Inspect, check or tag a folder of tasks.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(help="A folder of task directories.")]
RECORD_FILE = ".tags.calls.db"


@app.callback()
def _root() -> None:
    pass


app.command("list", epilog="Example: arise tasks list corpus")(corpus.list_tasks)
app.command(epilog="Example: arise tasks show corpus/answer")(corpus.show)
app.command(epilog="Example: arise tasks split corpus --out lists --share 0.1 --domain Finance")(corpus.split)
app.command(epilog="Example: arise tasks overlap corpus held-out")(corpus.overlap)


@app.command(epilog="Example: arise tasks check corpus --cheat --ignore dockerfile")
def check(
    folder: Folder,
    lint_only: Annotated[bool, typer.Option("--lint", help="Check the files only; build and run nothing.")] = False,
    oracle: Annotated[bool, typer.Option("--oracle", help="Run the solution only: it must earn 1.")] = False,
    null: Annotated[bool, typer.Option("--null", help="Run an agent that does nothing only: it must earn 0.")] = False,
    cheat: Annotated[bool, typer.Option("--cheat", help="Try whether an attempt can write its own reward.")] = False,
    repeat: Annotated[int, typer.Option(min=1, help="Verify this many times, to find inconsistent verifiers.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Number of tasks checked in parallel.")] = 4,
    kind: Annotated[str, typer.Option(help="auto, bubblewrap, overlay, podman or docker, as sandbox.kind.")] = "auto",
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", help="Requirements to ignore if unmet, as in tasks.ignore."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Lint every task, build its image, and run its solution and an agent that does nothing.

    The solution must always earn reward 1 and the idle agent 0.
    """
    import asyncio
    from dataclasses import replace

    from arise.rollouts.oracle import Trials
    from arise.tasks import read_corpus, without
    from arise.tasks.lint import lint_all

    with one_message():
        read, ignored = read_corpus(folder), _known_needs(ignore or [])
        read = replace(read, tasks=tuple(without(task, ignored) for task in read.tasks))
        trials = Trials(oracle or not null, null or not oracle, cheat, repeat)
        found = list(zip(read.tasks, map(tuple, lint_all(read.tasks)), strict=True))
        if not lint_only:
            clean = tuple(task for task, problems in found if not problems)
            tried = asyncio.run(_check(clean, ignored, trials, jobs, _kind(kind)))
            by_folder = dict(zip((task.directory for task in clean), tried, strict=True))
            found = [(task, by_folder.get(task.directory, problems)) for task, problems in found]
    problems = [*read.problems, *(problem for _, each in found for problem in each)]
    sound = [task.task.id for task, each in found if not each]
    if as_json:
        listed = [{"path": str(p.path), "problem": p.what, "remedy": p.remedy} for p in problems]
        say_json({"sound": sound, "problems": listed})
    else:
        for problem in problems:
            say(str(problem))
        read_ones = "readable tasks" if read.problems else "tasks"
        say(f"{len(sound)} of {len(found)} {read_ones} are sound" + " and withstood every cheat" * cheat)
    if problems:
        raise typer.Exit(Exit.TASKS)


def _known_needs(names: list[str]) -> list[str]:
    from typing import get_args

    from arise.config.tasks import TaskNeed
    from arise.errors import AriseError

    known = get_args(TaskNeed)
    if unknown := [name for name in names if name not in known]:
        what = f"--ignore {unknown[0]!r} is not something a task can require"
        raise AriseError("config", Exit.CONFIG, what, "nothing was checked", f"use one of: {', '.join(known)}")
    return names


def _kind(name: str) -> "Kind":
    from typing import get_args

    from arise.errors import AriseError
    from arise.sandbox.choose import Kind

    if name not in get_args(Kind):
        what, known = f"--kind {name!r} is no kind of sandbox", ", ".join(get_args(Kind))
        raise AriseError("config", Exit.CONFIG, what, "nothing was checked", f"use one of: {known}")
    return name  # type: ignore[return-value]


async def _check(
    tasks: "tuple[TaskSpec, ...]", ignore: list[str], trials: "Trials", jobs: int, kind: "Kind"
) -> "list[tuple[TaskProblem, ...]]":
    """Return the problems of each task; a task with unmet needs is not run."""
    import asyncio

    from arise.compose.sandboxes import offers, trial_pools
    from arise.errors import AriseError
    from arise.rollouts.cheats import forgeries
    from arise.rollouts.oracle import check_task
    from arise.sandbox import SandboxUnavailable
    from arise.tasks import refused

    slots, offered = asyncio.Semaphore(jobs), offers(kind)

    async def problems(task: "TaskSpec") -> "tuple[TaskProblem, ...]":
        async with slots:
            found = tuple(refused(task, offered(task.environment), ignore)) or await check_task(task, pools, trials)
            return found or (await forgeries(task, pools) if trials.cheat else ())

    try:
        async with trial_pools(jobs, kind, tell=lambda message: say(message, err=True)) as pools:
            return await asyncio.gather(*map(problems, tasks))
    except SandboxUnavailable as error:
        raise AriseError("sandbox", Exit.ENGINE, error.what, "nothing was checked", error.remedy) from None


@app.command(epilog="Example: arise tasks tag corpus --model gpt-4o-mini --repeat 2")
def tag(
    folder: Folder,
    model: Model = "gpt-4o-mini",
    base_url: BaseUrl = OPENAI,
    api_key_env: KeyEnv = "OPENAI_API_KEY",
    repeat: Annotated[int, typer.Option(min=1, max=2, help="2 tags everything twice and measures agreement.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report only, leave tags.json as it is.")] = False,
    max_usd: MaxUsd = 0.0,
    price: PriceOption = "",
    as_json: AsJson = False,
) -> None:
    """Annotate task types with a language model in two passes; an interrupted command can be continued."""
    import asyncio

    from arise.config.llm import EndpointConfig
    from arise.llm.annotation.annotation_report import report_of
    from arise.tasks import read_corpus

    corpus = read_corpus(folder)
    if not corpus.tasks:
        say("\n".join(map(str, corpus.problems)), err=True)
        raise typer.Exit(Exit.TASKS)
    cards = [card_of(found) for found in corpus.tasks]
    endpoint = EndpointConfig(model=model, base_url=base_url, api_key_env=api_key_env, price=price_of(price))
    with one_message():
        found, agreement, cost = asyncio.run(_tag(cards, endpoint, repeat, folder / RECORD_FILE, max_usd))
    if not dry_run:
        _write(folder, found)
    known = {task.task.id: task.task.task_types for task in corpus.tasks if task.task.task_types}
    report = report_of(found, agreement, known)
    say(_as_json(report, cost) if as_json else _as_text(report, cost, len(corpus.problems)))


def card_of(found: "TaskSpec") -> "TaskCard":
    """Return the annotator's view of a task: instruction, skill names and environment paths; no tests, no solution."""
    from arise.llm.annotation.annotator import TaskCard
    from arise.tasks import BUILD_FILES

    root = found.environment.files
    paths = sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()) if root else []
    visible = tuple(path for path in paths if path not in BUILD_FILES)
    return TaskCard(found.task.id, found.task.instruction, found.task.provided_skills, visible)


async def _tag(
    cards: "list[TaskCard]", endpoint: "EndpointConfig", repeat: int, record: Path, max_usd: float
) -> "tuple[AnnotatedTasks, TagAgreement | None, Cost]":
    from arise.config.llm import AnnotationConfig, CallsConfig
    from arise.llm.annotation.annotation_report import agreement_of
    from arise.llm.annotation.annotator import Annotator
    from arise.llm.first_call.needs import annotation_needs
    from arise.tasks import task_types

    # The command is interactive: stop if the endpoint is down; running it again continues from the recorded replies.
    settings = AnnotationConfig(endpoint=endpoint, calls=CallsConfig(when_down="stop"))
    registry, size = task_types(), settings.tasks_per_call
    batches = [cards[i : i + size] for i in range(0, len(cards), size)]
    longest = max(sum(min(len(card.instruction), 12_000) for card in batch) for batch in batches)
    needs = annotation_needs(longest, sum(map(len, map(str, registry.values()))))
    tell = partial(say, err=True)
    async with session(settings.endpoint, settings.calls, "annotation", record, max_usd, needs, tell) as opened:
        runs = []
        for number in range(repeat):
            progress = _progress(len(cards), f"run {number + 1} of {repeat}")
            annotator = Annotator(opened.client, settings, registry, f"run {number}", progress)
            runs.append(await annotator.annotate(cards))
        agreement = agreement_of(runs[0], runs[1]) if repeat == 2 else None
        return runs[0], agreement, opened.cost()


def _progress(total: int, name: str) -> "Callable[[int], None]":
    """Return a callback that prints progress to stderr after every tenth of the first pass."""
    told = 0

    def progress(done: int) -> None:
        nonlocal told
        if total >= 40 and done * 10 // total > told:
            told = done * 10 // total
            typer.echo(f"{name}: {done:,} of {total:,} tasks", err=True)

    return progress


def _write(folder: Path, found: "AnnotatedTasks") -> None:
    """Write tags.json, which task loading reads; tasks without an annotation keep their tags."""
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
        f"covered   {report.covered} ({percent(share)}), {report.second_pass} of them in the second pass",
        f"types     {report.types_used} used, {report.tags_per_task:.2f} a task, "
        f"the largest in {percent(report.largest_share)} of tasks",
        f"open      {report.uncovered} without a type, {report.absent} without an annotation, "
        f"{len(report.low_confidence)} of low confidence",
    ]
    if report.agreement:
        same = report.agreement
        lines.append(
            f"agreement {percent(same.equal)} equal sets over {same.tasks} tasks, mean overlap {percent(same.overlap)}"
        )
    if report.against_known:
        same = report.against_known
        lines.append(
            f"before    {same.tasks} had types: {percent(same.equal)} equal sets, mean overlap {percent(same.overlap)}"
        )
    lines.append(f"cost      {cost}")
    lines += ["", "most frequent types", *(f"  {count:>5}  {name}" for name, count in report.types[:12])]
    if report.processes:
        lines += ["", "processes no type covers"]
        lines += [f"  {count:>5}  {name}: {text[:80]}" for name, count, text in report.processes[:8]]
    if report.absent_reasons:
        lines += ["", "no annotation because"]
        lines += [f"  {count:>5}  {reason[:90]}" for reason, count in report.absent_reasons]
    return "\n".join(lines)
