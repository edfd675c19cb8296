"""Runs from Python: what `arise train` and `arise resume` do, as functions of the public API."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from arise.config import Config
from arise.run.folder import claim, require_run

Write = Callable[[str], None]


def start_run(config: Config, folder: Path | str, write: Write | None = None) -> dict[str, Any]:
    """Train in a new run folder and return its summary, as `arise train --json` prints it.

    `write` receives every line of progress, for example `print`; by default nothing is printed. Do not call it from a
    running event loop. Raises AriseError with a remedy.

    ```python
    config = arise.load_config(Path("configs/embedded.toml"), ["train.iterations=20"])
    arise.start_run(config, "runs/first", write=print)
    ```
    """
    from arise.compose import training  # imports torch, which is slow

    path = Path(folder)
    return training.start(config, path, claim(path), write or _nowhere, live=False)


def resume_run(folder: Path | str, write: Write | None = None) -> dict[str, Any]:
    """Continue a run from its last commit and return its summary; a finished run returns its summary at once."""
    from arise.compose import training

    path = Path(folder)
    require_run(path)
    return training.resume(path, claim(path), write or _nowhere, live=False)


def _nowhere(line: str) -> None:
    """Drop a line."""
