"""`arise plan`: what a run will need before anything is spent."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arise.cli.output import AsJson, ConfigPaths, Overrides, config_files, one_message, say, say_json, table

if TYPE_CHECKING:
    from arise.plan.forecast import FleetSize, Forecast
    from arise.plan.judging import JudgeForecast
    from arise.plan.workload import Assumptions

DOES_NOT_FIT = 1


def plan(
    paths: ConfigPaths = None,
    overrides: Overrides = None,
    gpu: Annotated[str, typer.Option("--gpu", help="The accelerator, such as h100.")] = "",
    gpus: Annotated[int | None, typer.Option("--gpus", min=1, help="How many of them.")] = None,
    servers: Annotated[
        int | None, typer.Option("--servers", min=1, help="Sampling servers; by default the best.")
    ] = None,
    tensor_parallel: Annotated[
        int | None, typer.Option("--tensor-parallel", min=1, help="GPUs per sampling server.")
    ] = None,
    assume: Annotated[list[str] | None, typer.Option("--assume", help="Change one assumption: turns=25.")] = None,
    run: Annotated[Path | None, typer.Option("--from", help="Take lengths of rollouts from this run.")] = None,
    probe: Annotated[bool, typer.Option("--probe", help="Measure the configured engine on this machine.")] = False,
    sweep: Annotated[str, typer.Option("--sweep", help="Compare fleets: 8,32,256,1024.")] = "",
    as_json: AsJson = False,
) -> None:
    """Forecast memory, time, tokens, dollars and disk of a run, with every assumption."""
    with one_message():
        from arise.compose import plan as planning
        from arise.config.file import load_config

        config = load_config(config_files(paths), overrides or [])
        request = planning.PlanOptions(
            gpu, gpus or 0, servers or 0, tensor_parallel or 0, tuple(assume or ()), run, probe
        )
        if sweep:
            _sweep(list(planning.sizes(config, request, sweep)), as_json)
            return
        planned = planning.plan(config, request)
        if as_json:
            say_json(_as_values(planned.forecast, planned.judging, planned.assumed))
        else:
            for line in _lines(planned.forecast, planned.judging, planned.assumed):
                say(line)
        if not planned.forecast.fits:
            raise typer.Exit(DOES_NOT_FIT)


def _lines(found: "Forecast", judged: "JudgeForecast | None", assumed: "Assumptions") -> list[str]:
    """Return the forecast as lines of text."""
    from arise.text.numbers import dollars, duration, percent, size

    layout, work, simulated = found.layout, found.work, found.simulated
    many = f"{found.iterations} iterations of {work.rollouts // work.group_size} tasks x {work.group_size} rollouts"
    parts = ", ".join(f"{part} {duration(s)}" for part, s in simulated.parts.items() if s >= 0.5)
    lines = [
        f"{found.shape.name}, {_parameters(found.shape.parameters)} parameters, on {_where(layout)}; {many}",
        "",
        *(
            f"{(memory.role + ' GPU' if memory.role else 'memory'):<14}{size(memory.total)} of {size(memory.limit)}: "
            + ", ".join(f"{name} {size(part)}" for name, part in memory.parts)
            + ("" if memory.fits else "   DOES NOT FIT")
            for memory in found.memory
        ),
        f"{'iteration':<14}{duration(simulated.seconds)}: {parts}",
        f"{'':<14}servers decode {percent(simulated.servers_busy)} of the time, "
        f"{simulated.mean_conversations:.0f} conversations at a time; "
        f"the trainer works {percent(simulated.trainer_busy)}",
        f"{'tokens':<14}{work.rollouts * work.generated / 1e6:.2f} million generated, "
        f"{work.rollouts * work.tokens / 1e6:.2f} million trained on",
        f"{'twice as fast':<14}" + "; ".join(f"{f.part}: {duration(f.seconds)}" for f in found.faster),
    ]
    if judged is not None:
        price = "price not known" if judged.usd is None else dollars(judged.usd)
        read, written = judged.input_tokens / 1e6, judged.output_tokens / 1e6
        lines.append(
            f"{'judge':<14}{judged.calls} calls, {read:.1f} + {written:.1f} million tokens, {price} per iteration"
        )
    lines.append(f"{'disk':<14}{size(found.disk)} at the end")
    whole = duration(simulated.seconds * found.iterations)
    spent = f", {dollars(judged.usd * found.iterations)}" if judged is not None and judged.usd is not None else ""
    lines += [
        f"{'whole run':<14}{whole}{spent}, evaluations not included",
        "",
        "assumed (change with --assume, measure with --from RUN or --probe):",
    ]
    lines.append("  " + ", ".join(f"{name} {value:g}" for name, value in asdict(assumed).items()))
    return lines


def _parameters(number: int) -> str:
    return f"{number / 1e9:.1f} billion" if number >= 1e9 else f"{number / 1e6:.1f} million"


def _where(layout: Any) -> str:
    if layout.gpu.name == "cpu":
        return "this machine's processor"
    if layout.shared_cache:
        return f"one {layout.gpu.name} that samples and trains in turn"
    rows = f", {layout.context_parallel} per row" if layout.context_parallel > 1 else ""
    each = f"{layout.servers} sampling servers of {layout.tensor_parallel} GPUs"
    return f"{layout.gpus} {layout.gpu.name}: {each}, {layout.trainers} GPUs train{rows}"


def _as_values(found: "Forecast", judged: "JudgeForecast | None", assumed: "Assumptions") -> dict[str, Any]:
    return {
        **asdict(found),
        "fits": found.fits,
        "judge": asdict(judged) if judged else None,
        "assumed": asdict(assumed),
    }


def _sweep(sizes: "list[FleetSize]", as_json: bool) -> None:
    """Print one row per fleet and staleness."""
    from arise.text.numbers import duration, percent

    if as_json:
        say_json([{**asdict(row), "rollouts_per_hour": row.rollouts_per_hour} for row in sizes])
        return
    rows = [
        [
            "GPUs",
            "tasks",
            "staleness",
            "servers",
            "train",
            "iteration",
            "rollouts/h",
            "servers",
            "trainer",
            "bottleneck",
        ]
    ]
    for row in sorted(sizes, key=lambda row: (row.tasks, row.gpus, row.staleness)):
        found = row.forecast
        layout, simulated = found.layout, found.simulated
        rows.append(
            [
                str(row.gpus),
                str(row.tasks),
                str(row.staleness),
                f"{layout.servers} x {layout.tensor_parallel}",
                str(layout.trainers),
                duration(simulated.seconds) if found.fits else "does not fit",
                f"{row.rollouts_per_hour:.0f}" if found.fits else "",
                percent(simulated.servers_busy),
                percent(simulated.trainer_busy),
                found.bottleneck,
            ]
        )
    say(table(rows, right=frozenset({0, 1, 2, 4, 5, 6, 7, 8})))
