"""The configurations of a run in its own record, so that edits of `config.toml` are detected.

The first is recorded when the run starts, later ones with the iteration from which they apply.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from pydantic import ValidationError

from arise.config import Config
from arise.config.file import load_config
from arise.errors import AriseError, Exit
from arise.run.folder import CONFIG_FILE

Note = Callable[[Mapping[str, str]], None]


class Queried(Protocol):
    """A run whose database can be queried."""

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...


KEY = "config"
"""Prefix of the recorded facts `config 0`, `config 1`, ..."""
HARMLESS = (
    "trackers",
    "budget",
    "storage.checkpoint_every",
    "storage.keep_checkpoints",
    "storage.keep_every",
    "judge.allow_change",
    "judge.calls",
    "reflector.calls",
)
"""Fields and sections that affect neither learning nor measurement; a resume accepts changes to them."""


class Kept(NamedTuple):
    """A configuration and the number of iterations committed when it took effect."""

    iteration: int
    config: Config


class FieldChange(NamedTuple):
    """One changed field — `FieldChange("optimizer.learning_rate", 0.001, 0.01)`; None if a side lacks it."""

    field: str
    before: Any
    after: Any

    @property
    def harmless(self) -> bool:
        return self.named_by(HARMLESS)

    def named_by(self, names: Sequence[str]) -> bool:
        """Return whether one of the names is this field or a section that contains it."""
        return any(self.field == name or self.field.startswith(f"{name}.") for name in names)

    def __str__(self) -> str:
        return f"{self.field}: {self.before!r} in the record, {self.after!r} in {CONFIG_FILE}"


def recorded(run: Queried) -> list[Kept]:
    """Return every configuration of the run, oldest first; empty for runs older than this record."""
    rows = run.query("SELECT key, value FROM meta WHERE key GLOB ?", (f"{KEY} *",))
    try:
        found = [json.loads(value) for _, value in sorted(rows, key=lambda row: int(row[0].partition(" ")[2]))]
        return [Kept(entry["iteration"], Config.model_validate(entry["config"])) for entry in found]
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise AriseError(
            "storage",
            Exit.STORAGE,
            f"the recorded configuration cannot be read: {str(error).splitlines()[0]}",
            "nothing was started",
            "open the run with the version of arise that wrote it, or bring the folder back from a copy",
        ) from None


def record(config: Config, run: Queried, note: Note) -> None:
    """Record the configuration, unless it is already the current one."""
    known = recorded(run)
    if known and known[-1].config == config:
        return
    ((committed,),) = run.query("SELECT COUNT(*) FROM iterations")
    value = json.dumps({"iteration": committed, "config": config.model_dump(mode="json")}, sort_keys=True)
    note({f"{KEY} {len(known)}": value})


def changes(before: Config, after: Config) -> list[FieldChange]:
    """Return every field that differs, by name."""
    old, new = (dict(_flat(config.model_dump())) for config in (before, after))
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return [FieldChange(name, old.get(name), new.get(name)) for name in names]


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def run_config(folder: Path, run: Queried, allowed: Sequence[str] = ()) -> tuple[Config, list[FieldChange]]:
    """Return the configuration in the folder and its edits; refuse edits that are not harmless or allowed by name."""
    config, known = load_config(folder / CONFIG_FILE), recorded(run)
    edited = changes(known[-1].config, config) if known else []
    for name in allowed:
        if not any(change.named_by([name]) for change in edited):
            what = f"--change {name}: {folder / CONFIG_FILE} says the same about it as the record"
            raise AriseError("config", Exit.CONFIG, what, "nothing was started", "leave the option out")
    asked = [change for change in edited if not change.harmless and not change.named_by(allowed)]
    if asked:
        lines = "".join(f"\n    {change}" for change in asked)
        words = " ".join(f"--change {change.field}" for change in asked)
        raise AriseError(
            "config",
            Exit.CONFIG,
            f"{folder / CONFIG_FILE} was edited after the run was made:{lines}",
            "nothing was started: one run would mix two configurations",
            f"undo the edit, or continue with it: arise resume {folder} {words}",
        )
    return config, edited


def edits(folder: Path, run: Queried) -> list[FieldChange]:
    """Return the differences between the file and the record, harmless or not."""
    known = recorded(run)
    return changes(known[-1].config, load_config(folder / CONFIG_FILE)) if known else []
