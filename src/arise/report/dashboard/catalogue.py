"""The runs a dashboard serves, by name."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from arise.errors import AriseError, Exit
from arise.report.dashboard.pages.page import Asked, NotFound
from arise.run.listing import RunLine, run_line
from arise.run.reader import RunReader


class Catalogue:
    """Run folders by name; a folder of runs represents all runs in it, including later ones."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = [folder.absolute() for folder in folders]

    @classmethod
    def of(cls, folders: Iterable[Path]) -> "Catalogue":
        """Create a catalogue; refuse a folder that neither is nor contains a run."""
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
        """Return all runs, newest last; equal names get a number."""
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
        """Open one snapshot of a run for one request."""
        folder = self.runs().get(name)
        if folder is None:
            raise NotFound(f"no run {name!r} is served here")
        with RunReader.open(folder) as run:
            yield Asked(run, name)


def summaries(catalogue: Catalogue) -> list[RunLine]:
    """Return one row per run, also for those that cannot be read."""
    return [run_line(folder, name) for name, folder in catalogue.runs().items()]


def _runs_in(folder: Path) -> Iterator[Path]:
    if (folder / "run.db").is_file():
        yield folder
        return
    with suppress(OSError):
        yield from sorted((p for p in folder.iterdir() if (p / "run.db").is_file()), key=lambda p: p.name)
