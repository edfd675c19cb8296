"""`arise sampler why`: explain why a task was drawn. Heavy imports stay inside the command."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from arise.cli.output import AsJson, RunFolder, one_message, say, say_json

if TYPE_CHECKING:
    from arise.run.reader import RunReader
    from arise.run.rows import SlotRow

WIDTH = 100
app = typer.Typer(help="Explain why tasks were drawn.", no_args_is_help=True)


Place = Annotated[
    str, typer.Argument(help="An iteration, or one of its slots: 12 or 12:3.", metavar="ITERATION[:SLOT]")
]


@app.callback()
def _root() -> None:
    pass


@app.command(epilog="Example: arise sampler why runs/first 12:2")
def why(
    run: RunFolder,
    place: Place,
    as_json: AsJson = False,
) -> None:
    """Explain why the tasks of an iteration were drawn: the path, its probability and the weak cell."""
    with one_message():
        from arise.run.reader import RunReader

        iteration, slot = _parsed(place)
        with RunReader.open(run) as reader:
            slots = _slots(reader, iteration, slot)
            if as_json:
                say_json([_facts(found) for found in slots])
            else:
                say("\n".join(_explained(found) for found in slots))


def _parsed(place: str) -> tuple[int, int | None]:
    from arise.errors import AriseError, Exit

    iteration, colon, slot = place.partition(":")
    if not iteration.isdecimal() or (colon and not slot.isdecimal()):
        what = f"{place!r} is not an iteration or a slot"
        raise AriseError("sampler", Exit.CONFIG, what, "nothing was read", "write 12, or 12:3 for its third slot")
    return int(iteration), int(slot) if colon else None


def _slots(reader: "RunReader", iteration: int, slot: int | None) -> "list[SlotRow]":
    from arise.errors import AriseError, Exit
    from arise.run.numbering import k_of

    slots = reader.slots(k_of(iteration))
    if not slots:
        there = f"iterations 1 to {reader.committed()} exist"
        raise AriseError("sampler", Exit.CONFIG, f"there is no iteration {iteration}", there, "name one of these")
    wanted = [found for found in slots if slot in (None, found.slot + 1)]
    if not wanted:
        what = f"iteration {iteration} has no slot {slot}"
        raise AriseError("sampler", Exit.CONFIG, what, f"it has slots 1 to {len(slots)}", "name one of these")
    return wanted


def _facts(found: "SlotRow") -> dict[str, Any]:
    from arise.run.why import why as reason
    from arise.types.codec import to_json

    place = {"iteration": found.iteration, "slot": found.slot + 1}
    return {**place, **to_json(found.draw), "why": str(reason(found.draw, found.mass))}


def _explained(found: "SlotRow") -> str:
    from textwrap import fill

    from arise.run.why import why as reason

    head = f"{found.iteration}:{found.slot + 1}  {found.draw.task_id}"
    indent = " " * 4
    return (
        f"{head}\n{fill(str(reason(found.draw, found.mass)), WIDTH, initial_indent=indent, subsequent_indent=indent)}"
    )
