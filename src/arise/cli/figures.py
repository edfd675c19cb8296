"""`arise figures` and `arise tables`: the paper's figures and tables from run folders alone."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arise.cli.output import AsJson, one_message

if TYPE_CHECKING:
    from arise.report.comparison.report import DrawFigures

Runs = Annotated[list[Path], typer.Argument(help="Run folders, or folders that `arise compare` made.")]
Out = Annotated[Path, typer.Option("--out", help="Where the files go.")]


def figures(
    runs: Runs,
    out: Out = Path("figures"),
    formats: Annotated[str, typer.Option("--formats", help="Which of pdf, svg, png.")] = "pdf,svg,png",
    as_json: AsJson = False,
) -> None:
    """Draw the paper's Figures 3 to 6, and additional ones, from runs."""
    with one_message():
        kinds = [kind.strip() for kind in formats.split(",")]
        _check_formats(kinds)
        from arise.observe.waits import bars
        from arise.report.comparison.measures import read_study

        with bars():
            study = read_study(runs)
            pictures = drawing()(study, out, kinds)
        _tell([out / f"{picture.path.stem}.{kind}" for picture in pictures for kind in kinds], as_json)


def tables(runs: Runs, out: Out = Path("tables"), as_json: AsJson = False) -> None:
    """Write the paper's Tables 1, 6 and 11 from runs, as Markdown and LaTeX."""
    with one_message():
        from arise.errors import AriseError, Exit
        from arise.report.comparison.measures import finished_only, read_study
        from arise.report.comparison.report import write_tables

        study = finished_only(read_study(runs))
        if not study:
            raise AriseError(
                "tables",
                Exit.STORAGE,
                "none of these runs has its last evaluation yet",
                "nothing was written",
                "arise resume RUN, then ask again",
            )
        _tell(write_tables(study, out), as_json)


def drawing() -> "DrawFigures":
    """Return the draw function; raise if matplotlib is not installed."""
    from arise.errors import AriseError, Exit

    try:
        from arise.report.figures.draw import draw
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("matplotlib"):
            raise
        raise AriseError(
            "figures",
            Exit.CONFIG,
            "matplotlib is not installed",
            "nothing was drawn",
            "pip install 'arise-rl[figures]'",
        ) from None
    return draw


def _check_formats(kinds: list[str]) -> None:
    from arise.errors import AriseError, Exit
    from arise.report.figures import FORMATS

    unknown = [kind for kind in kinds if kind not in FORMATS]
    if unknown:
        raise AriseError(
            "figures",
            Exit.CONFIG,
            f"--formats: {unknown[0]!r} is none of {', '.join(FORMATS)}",
            "nothing was drawn",
            "for example --formats svg,png",
        )


def _tell(paths: list[Path], as_json: bool) -> None:
    typer.echo(json.dumps([str(path) for path in paths]) if as_json else "\n".join(map(str, paths)))
