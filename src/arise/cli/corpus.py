"""`arise tasks list`, `show`, `split` and `overlap`: inspect a corpus. Heavy imports stay inside the commands."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arise.cli.output import AsJson, one_message, say, say_json, table
from arise.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arise.tasks.overlap import Embed, Match, Text
    from arise.types import TaskSpec

Source = Annotated[
    Path, typer.Argument(help="A folder of task directories, a .txt list, a Harbor registry.json or a dataset.toml.")
]


def _usable(source: Path) -> "tuple[TaskSpec, ...]":
    """Return the usable tasks of a source; print the problems of the others to stderr."""
    from arise.tasks import read_corpus

    corpus = read_corpus(source)
    for problem in corpus.problems:
        say(str(problem), err=True)
    if not corpus.tasks:
        raise typer.Exit(Exit.TASKS)
    return corpus.tasks


def list_tasks(source: Source, as_json: AsJson = False) -> None:
    """List the tasks of a corpus and count them by domain."""
    from arise.tasks.split import by_domain

    with one_message():
        tasks = _usable(source)
    counts = by_domain(tasks)
    if as_json:
        listed = [{"id": t.task.id, "domain": t.task.domain, "types": list(t.task.task_types)} for t in tasks]
        say_json({"tasks": listed, "domains": {name: count for name, count, _ in counts}})
        return
    rows = [[t.task.id, t.layout, t.task.domain, ", ".join(t.task.task_types)] for t in tasks]
    say(table([["task", "format", "domain", "types"], *rows]))
    say("")
    total = ["Total", f"{len(tasks):,}", "100.0"]
    domains = [[name, f"{count:,}", f"{share:.1f}"] for name, count, share in counts]
    say(table([["domain", "tasks", "%"], *domains, total], frozenset({1, 2})))


def show(directory: Annotated[Path, typer.Argument(help="One task directory.")], as_json: AsJson = False) -> None:
    """Show what one task requires, and which kind of sandbox would run it on this machine."""
    from arise.compose.sandboxes import offers
    from arise.sandbox.choose import image_kind, why_image
    from arise.tasks import TaskProblem, read_task, refused

    found = read_task(directory)
    if isinstance(found, list):
        say("\n".join(map(str, found)), err=True)
        raise typer.Exit(Exit.TASKS)
    reason = why_image(found.place)
    kind = (image_kind("auto")[0] or "none") if reason else "bubblewrap"
    problems: list[TaskProblem] = refused(found, offers("auto")(found.environment))
    facts = _facts(found) | {"sandbox": f"{kind}: {reason or 'it needs no image'}", "refused": list(map(str, problems))}
    if as_json:
        say_json(facts)
        return
    say(table([[name, str(value)] for name, value in facts.items() if value not in ("", None, [], 0.0)]))
    say(f"\n{found.task.instruction}")


def _facts(task: "TaskSpec") -> dict[str, Any]:
    place, check = task.place, task.verifier
    return {
        "id": task.task.id,
        "format": task.layout,
        "domain": task.task.domain,
        "types": list(task.task.task_types),
        "steps": [step.name for step in task.steps],
        "image": place.image or (str(place.dockerfile) if place.dockerfile else ""),
        "network": place.network,
        "user": place.user,
        "workdir": place.workdir,
        "cpus": place.cpus,
        "memory_mb": place.memory_mb,
        "storage_mb": place.storage_mb,
        "agent_seconds": task.agent.timeout,
        "verifier_seconds": check.timeout,
        "separate_verifier": "yes" if check.place is not None else "",
        "skills": list(task.task.provided_skills),
        "solution": str(task.solution.folder) if task.solution else "",
    }


def split(
    source: Source,
    out: Annotated[Path, typer.Option("--out", help="Folder for train.txt and held-out.txt.")],
    share: Annotated[float, typer.Option(min=0.0, max=0.9, help="Share held out of every domain and type.")] = 0.1,
    domain: Annotated[list[str] | None, typer.Option("--domain", help="Hold out a whole domain.")] = None,
    type_: Annotated[list[str] | None, typer.Option("--type", help="Hold out a whole task type.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed holds out other tasks.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Split a corpus into training and held-out tasks, written as two lists that every command accepts."""
    import os

    from arise.tasks.split import split as divide

    with one_message():
        tasks = _usable(source)
        parts = divide(tasks, share, seed, domain or (), type_ or ())
        out.mkdir(parents=True, exist_ok=True)
        for name, part in (("train", parts.train), ("held-out", parts.held_out)):
            lines = [os.path.relpath(task.directory.resolve(), out.resolve()) for task in part]
            (out / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if as_json:
        say_json({name: [task.task.id for task in part] for name, part in vars(parts).items()})
    else:
        say(f"{out / 'train.txt'}: {len(parts.train)} tasks")
        say(f"{out / 'held-out.txt'}: {len(parts.held_out)} tasks")


def overlap(
    train: Source,
    held_out: Annotated[Path, typer.Argument(help="The tasks that training must not repeat.", metavar="EVAL")],
    embed: Annotated[bool, typer.Option("--embed", help="Compare meanings too, with an embedding model.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find held-out tasks that a training corpus repeats: identical, near-identical, paraphrased, or equal tests."""
    from arise.tasks.overlap import find_overlap

    with one_message():
        ours, theirs = _usable(train), _usable(held_out)
        found = find_overlap(_texts(ours), _texts(theirs), _model() if embed else None)
    if as_json:
        say_json([vars(match) for match in found])
    else:
        say(_overlap_text(found, len(ours), len(theirs)))
    if found:
        raise typer.Exit(Exit.TASKS)


def _model() -> "Embed":
    from arise.engines import embeddings

    return embeddings.embed


def _texts(tasks: "Sequence[TaskSpec]") -> "list[Text]":
    from arise.tasks.overlap import text_of

    return [text_of(task) for task in tasks]


def _overlap_text(found: "Sequence[Match]", ours: int, theirs: int) -> str:
    held = len({match.held_out for match in found})
    last = f"{held} of {theirs} held-out tasks are repeated by {ours} training tasks"
    if not found:
        return last
    rows = [[match.kind, f"{match.score:.2f}", match.held_out, match.train] for match in found]
    return table([["kind", "score", "held out", "training"], *rows], frozenset({1})) + f"\n{last}"
