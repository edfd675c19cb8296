"""The runs a dashboard serves, by name."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from arise.errors import AriseError, Exit
from arise.report.dashboard.pages.page import Asked, NotFound
from arise.run.reader import RunReader


class Catalogue:
    """Names to run folders; a folder of runs stands for all runs in it, also those that come later."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = [folder.absolute() for folder in folders]

    @classmethod
    def of(cls, folders: Iterable[Path]) -> "Catalogue":
        """Checked: every folder is a run or holds at least one."""
        catalogue = cls(folders)
        for folder in catalogue._folders:
            if not list(_runs_in(folder)):
                raise AriseError(
                    "storage",
                    Exit.STORAGE,
                    f"{folder} holds no run",
                    "nothing was served",
                    "name run folders that `arise train` made, or start one with: arise train",
                )
        return catalogue

    def runs(self) -> Mapping[str, Path]:
        """All runs now, newest last; equal names get a number."""
        found: dict[str, Path] = {}
        for folder in dict.fromkeys(run for given in self._folders for run in _runs_in(given)):
            name, number = folder.name, 1
            while name in found:
                number += 1
                name = f"{folder.name}-{number}"
            found[name] = folder
        return found

    @contextmanager
    def open(self, name: str) -> Iterator[Asked]:
        """One snapshot of a run for one request."""
        folder = self.runs().get(name)
        if folder is None:
            raise NotFound(f"no run {name!r} is served here")
        with RunReader.open(folder) as run:
            yield Asked(run, name)


@dataclass(frozen=True)
class Summary:
    """A run as a list of runs shows it."""

    name: str
    committed: int
    planned: int | None
    pass_rate: float | None
    pool: int
    problem: str = ""


def summaries(catalogue: Catalogue) -> list[Summary]:
    """Every run, also those that cannot be read, with the reason."""
    found = []
    for name in catalogue.runs():
        try:
            with catalogue.open(name) as asked:
                last = asked.run.last_iteration()
                metrics = last.metrics if last else {}
                planned = asked.run.config().get("train", {}).get("iterations")
                found.append(
                    Summary(
                        name,
                        last.number if last else 0,
                        planned,
                        metrics.get("pass_rate"),
                        int(metrics.get("pool", 0)),
                    )
                )
        except AriseError as error:
            found.append(Summary(name, 0, None, None, 0, str(error).partition("\n")[0]))
    return found


def _runs_in(folder: Path) -> Iterator[Path]:
    if (folder / "run.db").is_file():
        yield folder
        return
    with suppress(OSError):
        yield from sorted((p for p in folder.iterdir() if (p / "run.db").is_file()), key=lambda p: p.name)
