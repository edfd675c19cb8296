"""Task types by a language model, in two passes (App. "Task-Type Annotation"): the whole registry, then nearby types.

Sees instructions, names of skills and paths of artifacts, never tests, solutions or trajectories.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from arise.config.llm import AnnotationConfig as Settings
from arise.llm.client.client import Client, Unanswered
from arise.llm.judge.evaluation import digest
from arise.llm.prompts.prompt import Template, render, to_json
from arise.llm.prompts.shapes import annotations
from arise.llm.wire import Annotation, parse_annotations
from arise.tasks.registry import TaskType

_INSTRUCTION_CHARS = 12_000
_PATHS = 200


@dataclass(frozen=True)
class TaskCard:
    """What an annotator may know of a task — `TaskCard("csv-007", "Clean ...", (), ("data.csv",))`."""

    task_id: str
    instruction: str
    skills: tuple[str, ...] = ()
    artifact_paths: tuple[str, ...] = ()


@dataclass
class Annotated:
    """Annotations by task id, a reason for each that is absent, and which tasks the second pass settled."""

    annotations: dict[str, Annotation] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    second_pass: list[str] = field(default_factory=list)


class Annotator:
    """Annotate tasks in batches; recorded replies let a stopped run continue."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        registry: Mapping[str, TaskType],
        salt: str = "",
        progress: Callable[[int], None] = lambda _done: None,
    ) -> None:
        self._client, self._settings, self._registry, self._salt = client, settings, registry, salt
        self._progress = progress

    async def annotate(self, cards: Sequence[TaskCard]) -> Annotated:
        """Run both passes; a task without a match is checked again against its nearest types."""
        size = self._settings.tasks_per_call
        batches = [cards[i : i + size] for i in range(0, len(cards), size)]
        result = Annotated()

        async def first_pass(batch: Sequence[TaskCard]) -> None:
            part = await self._batch(batch, tuple(self._registry))
            result.annotations |= part.annotations
            result.absent |= part.absent
            self._progress(len(result.annotations) + len(result.absent))

        await asyncio.gather(*map(first_pass, batches))
        by_id = {card.task_id: card for card in cards}
        result.annotations = {name: result.annotations[name] for name in by_id if name in result.annotations}
        near = {
            task_id: found.uncovered.nearest
            for task_id, found in result.annotations.items()
            if found.uncovered and found.uncovered.nearest
        }
        again = await asyncio.gather(*(self._batch([by_id[task_id]], tags) for task_id, tags in near.items()))
        for task_id, part in zip(near, again, strict=True):
            second = part.annotations.get(task_id)
            if second and second.task_types:
                result.annotations[task_id] = second
                result.second_pass.append(task_id)
        return result

    async def _batch(self, cards: Sequence[TaskCard], tags: Sequence[str]) -> Annotated:
        """Send one request and its retries; missing tasks are asked for again, one by one on the last try."""
        result = Annotated()
        missing = list(cards)
        for attempt in range(self._settings.calls.format_attempts):
            parts = [missing] if attempt == 0 else [[card] for card in missing]
            for part in await asyncio.gather(*(self._ask(one, tags, attempt) for one in parts)):
                result.annotations |= part.annotations
                result.absent |= part.absent
            missing = [card for card in missing if card.task_id not in result.annotations]
            if not missing:
                break
        result.absent = {card.task_id: result.absent[card.task_id] for card in missing}
        return result

    async def _ask(self, cards: Sequence[TaskCard], tags: Sequence[str], attempt: int) -> Annotated:
        keys = {f"t{number}": card for number, card in enumerate(cards)}
        values: dict[str, object] = {
            "registry_version": registry_version(self._registry),
            "task_flow_registry": [_type(self._registry[tag]) for tag in tags],
            "tasks": [_task(key, card) for key, card in keys.items()],
        }
        call = digest(to_json([self._salt, attempt, values]))
        prompt = render(Template.TASK_ANNOTATION, values | {"call": call}, shape=annotations(list(keys)))
        reply = await self._client.ask(prompt)
        if isinstance(reply, Unanswered):
            return Annotated(absent={card.task_id: str(reply) for card in cards})
        parsed = parse_annotations(reply.text, list(keys), tags)
        return Annotated(
            {keys[k].task_id: replace(found, task_key=keys[k].task_id) for k, found in parsed.annotations.items()},
            {keys[k].task_id: reason for k, reason in parsed.absent.items()},
        )


def registry_version(registry: Mapping[str, TaskType]) -> str:
    """Return a content hash of the registry."""
    return sha256(to_json([_type(entry) for entry in registry.values()]).encode()).hexdigest()[:12]


def _type(entry: TaskType) -> dict[str, str]:
    return {
        "id": entry.id,
        "definition": entry.definition,
        "true_criteria": entry.true_criteria,
        "false_criteria": entry.false_criteria,
    }


def _task(key: str, card: TaskCard) -> dict[str, object]:
    text = card.instruction
    return {
        "task_key": key,
        "instruction": text if len(text) <= _INSTRUCTION_CHARS else f"{text[:_INSTRUCTION_CHARS]} [cut]",
        "skills": list(card.skills[:_PATHS]),
        "artifact_paths": list(card.artifact_paths[:_PATHS]),
    }
