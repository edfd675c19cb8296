"""tau2: simulations in `results.json`, or one file each in a folder next to it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from arise.analyze.files import Unreadable, as_mapping, load, load_optional, mentions
from arise.analyze.found import Item, Options, Skipped
from arise.analyze.readers.openai_messages import attempt_of_row

SUMMARY, FOLDER = "results.json", "simulations"


class Tau2Reader:
    """Read the simulations of one file, which also holds the task, the policy and the model."""

    name = "tau2"

    def detect(self, path: Path) -> bool:
        if not path.is_file() or path.suffix != ".json" or not mentions(path, '"info"'):
            return False  # in a long file the simulations come after the part that is inspected
        return mentions(path, '"num_trials"', '"user_info"') or mentions(path, '"simulations"', '"tasks"')

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        try:
            document = as_mapping(load(path))
        except Unreadable as error:
            yield Skipped(str(path), str(error))
            return
        for number, row in enumerate(document.get("simulations") or ()):
            yield attempt_of_row(_whole(row, document), f"{path}#{number}", options, self.name)


class Tau2FolderReader:
    """Read a folder that keeps one file per simulation."""

    name = "tau2"

    def detect(self, path: Path) -> bool:
        return (path / FOLDER).is_dir() and Tau2Reader().detect(path / SUMMARY)

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        document = as_mapping(load_optional(path / SUMMARY))
        for file in sorted((path / FOLDER).glob("*.json")):
            try:
                yield attempt_of_row(_whole(load(file), document), str(file), options, self.name)
            except Unreadable as error:
                yield Skipped(str(file), str(error))


def _whole(row: Any, document: Mapping[str, Any]) -> Any:
    """Return a simulation with what is recorded once for all of them; the policy becomes the system prompt."""
    if not isinstance(row, Mapping):
        return row
    facts = as_mapping(document.get("info"))
    world = as_mapping(facts.get("environment_info"))
    tasks = (task for task in document.get("tasks") or () if isinstance(task, Mapping))
    policy = row.get("policy") or world.get("policy")
    messages = row.get("messages") or []
    return {
        "model": as_mapping(facts.get("agent_info")).get("llm"),
        "domain": world.get("domain_name"),
        "simulation_id": row.get("id"),
        "task_definition": next((task for task in tasks if str(task.get("id")) == str(row.get("task_id"))), None),
        **row,
        "messages": [{"role": "system", "content": policy}, *messages] if policy and messages else messages,
    }
