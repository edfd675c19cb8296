"""`arise sampler why`: why a task was drawn. Heavy imports live inside the command."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from arise.cli_output import AsJson, RunFolder, one_message, say, say_json

if TYPE_CHECKING:
    from arise.store import RunReader
    from arise.store.rows import SlotRow

app = typer.Typer(help="The task sampler of a run.", no_args_is_help=True)


Place = Annotated[
    str, typer.Argument(help="An iteration, or one of its slots: 12 or 12:3.", metavar="ITERATION[:SLOT]")
]


@app.callback()
def _root() -> None:
    pass


@app.command(epilog="Example: arise sampler why runs/first 12:3")
def why(
    run: RunFolder,
    place: Place,
    as_json: AsJson = False,
) -> None:
    """Say why the tasks of an iteration were drawn: the path, its probability, and the weak cell behind it."""
    with one_message():
        from arise.store import RunReader

        iteration, slot = _parsed(place)
        with RunReader.open(run) as reader:
            slots = _slots(reader, iteration, slot)
            if as_json:
                from arise.codec import to_json

                say_json([{"iteration": iteration, "slot": found.slot + 1, **to_json(found.draw)} for found in slots])
                return
            cells = {(c.task_type, c.capability): c for c in reader.cells(iteration - 2)} if iteration > 1 else {}
            say("\n".join(_explained(found, cells) for found in slots))


def _parsed(place: str) -> tuple[int, int | None]:
    from arise.errors import AriseError, Exit

    iteration, colon, slot = place.partition(":")
    if not iteration.isdecimal() or (colon and not slot.isdecimal()):
        what = f"{place!r} is not an iteration or a slot"
        raise AriseError("sampler", Exit.CONFIG, what, "nothing was read", "write 12, or 12:3 for its third slot")
    return int(iteration), int(slot) if colon else None


def _slots(reader: "RunReader", iteration: int, slot: int | None) -> "list[SlotRow]":
    from arise.errors import AriseError, Exit

    slots = reader.slots(iteration - 1)
    if not slots:
        there = f"iterations 1 to {reader.committed()} are there"
        raise AriseError("sampler", Exit.CONFIG, f"there is no iteration {iteration}", there, "name one of these")
    wanted = [found for found in slots if slot in (None, found.slot + 1)]
    if not wanted:
        what = f"iteration {iteration} has no slot {slot}"
        raise AriseError("sampler", Exit.CONFIG, what, f"it has slots 1 to {len(slots)}", "name one of these")
    return wanted


PATHS = {
    "discovery": "discovery: rubrics of the pool were not evaluated on it yet",
    "adaptive": "adaptive: it exercises a weak behaviour",
    "fallback": "fallback: no weak cell had room",
    "uniform": "uniform: every task once an epoch",
    "vade": "VADE: its drawn success probability promises most",
}


def _explained(found: "SlotRow", cells: "dict[tuple[str, str], Any]") -> str:
    draw = found.draw
    lines = [f"{found.k + 1}:{found.slot + 1}  {draw.task_id}", f"    {PATHS.get(draw.path.value, draw.path.value)}"]
    if draw.rho is not None:
        lines.append(f"    discovery is tried with probability {draw.rho:.2f}")
    if draw.cell is not None:
        mass = cells.get((draw.cell.task_type, draw.cell.capability.value))
        known = f", from {mass.passes:.1f} successes and {mass.fails:.1f} failures" if mass else ""
        lines.append(f"    weak cell: {draw.cell.task_type} x {draw.cell.capability.value}{known}")
        lines.append(
            f"    drawn pass rate {draw.estimate or 0:.2f}, weight {draw.weight or 0:.2f}, quota left {draw.quota_left}"
        )
    tried = "" if draw.attempts is None else f", attempted {draw.attempts} times before"
    lines.append(f"    probability of this task here {draw.probability:.3f}{tried}")
    return "\n".join(lines)
