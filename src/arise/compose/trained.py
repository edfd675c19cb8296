"""Use the policy of a run after training: export a checkpoint as a model folder, or chat with it."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from arise.compose.evaluations import last_iteration, require_checkpoint
from arise.compose.harnesses import HarnessParts, open_harness
from arise.compose.policies import open_engine
from arise.compose.registry import base_prompt, format_of
from arise.compose.sandboxes import open_sandboxes
from arise.compose.starts import cached_start
from arise.config import Config
from arise.engines.local import LocalEngine
from arise.engines.local.pretrained import intact
from arise.engines.remote.engine import RemoteEngine
from arise.errors import AriseError, Exit
from arise.ports import Engine, FormatError, SandboxPool
from arise.run.configuration import run_config
from arise.run.reader import RunReader
from arise.types import Message, SamplingParams


@asynccontextmanager
async def trained_engine(folder: Path, iteration: int | None) -> AsyncIterator[tuple[Config, Engine, int]]:
    """Open the run's engine at a checkpoint, by default the last; 0 is the initial model."""
    with RunReader.open(folder) as reader:
        config, _ = run_config(folder, reader)
    iteration = last_iteration(folder) if iteration is None else iteration
    checkpoint = require_checkpoint(folder, iteration) if iteration else None
    async with for_a_warm_start(config, folder) as (sandboxes, harness):
        engine = await open_engine(config, sandboxes, harness)
    try:
        if checkpoint is not None:
            try:
                await engine.load_state(str(checkpoint))
            except ValueError as error:
                remedy = "give back the model that the run began with"
                raise AriseError("model", Exit.CONFIG, str(error), "nothing was written", remedy) from None
        yield config, engine, iteration
    finally:
        engine.close()


@asynccontextmanager
async def for_a_warm_start(config: Config, folder: Path) -> AsyncIterator[tuple[SandboxPool, HarnessParts | None]]:
    """Open sandboxes only if the warm start of the run is not in the cache and must be created again."""
    made = config.model.kind == "pretrained" and not config.model.demonstrations
    if made or intact(cached_start(config)):
        yield cast(SandboxPool, None), None  # no demonstrations, so no sandbox is used
        return
    async with open_harness(config) as harness, open_sandboxes(config, folder, harness) as (sandboxes, _):
        yield sandboxes, harness


async def export_model(folder: Path, form: str, out: Path, iteration: int | None) -> int:
    """Write a checkpoint as a Hugging Face folder: `hf` with merged weights, `peft` the adapter alone."""
    async with trained_engine(folder, iteration) as (_, engine, exported):
        if form == "hf":
            await engine.export_hf(out)
            return exported
        if not isinstance(engine, LocalEngine | RemoteEngine) or not engine.capabilities().lora:
            raise AriseError(
                "export",
                Exit.CONFIG,
                f"{folder} trains all weights, so it has no adapter",
                "nothing was written",
                "export it with --format hf",
            )
        await engine.export_adapter(out)
        return exported


@dataclass(frozen=True)
class ChatReply:
    """One reply of a conversation; `note` is a message to the user about it."""

    text: str
    reasoning: str = ""
    finish: str = "stop"
    note: str = ""


async def chat(folder: Path, iteration: int | None, lines: Iterable[str], max_tokens: int) -> AsyncIterator[ChatReply]:
    """Answer each line as the next message of one conversation, without tools and evolved skills."""
    async with trained_engine(folder, iteration) as (config, engine, at):
        yield ChatReply("", note=f"{folder} at iteration {at}; an empty line or the end of input ends the conversation")
        dialogue = _Dialogue(engine, base_prompt(config) if config.agent.kind == "tools" else "", config)
        for line in lines:
            if not line.strip():
                return
            yield await dialogue.answer(line.strip(), max_tokens)


class _Dialogue:
    def __init__(self, engine: Engine, system: str, config: Config) -> None:
        self._engine, self._chat, self._settings = engine, format_of(engine), config.evaluation
        self._opening = [Message("system", system)] if system else []
        self._ids: list[int] = []
        self._seed = config.train.seed

    async def answer(self, text: str, max_tokens: int) -> ChatReply:
        """Reply to one message; if the context window is full, start a new conversation and set `note`."""
        said, note = Message("user", text), ""
        window = self._engine.capabilities().context_length
        ids = self._chat.extend(self._ids, [said]) if self._ids else None
        if self._ids and (ids is None or len(ids) >= window):
            ids, note = None, "the window is full: a new conversation begins"
        try:
            ids = self._chat.prompt([*self._opening, said]) if ids is None else ids
        except FormatError as error:
            return ChatReply("", note=f"the chat template of this model cannot show that: {error}")
        if len(ids) >= window:
            return ChatReply("", note=f"the message is too long: {len(ids)} tokens, the window is {window}")
        settings = SamplingParams(
            max_tokens, (), self._settings.temperature, self._settings.top_p, self._seed, conversation="chat"
        )
        (segment,) = await self._engine.sample(ids, settings)
        self._ids = [*ids, *segment.ids]
        reply = self._chat.read(segment.ids, (), ids)
        return ChatReply(reply.text, reply.reasoning, segment.finish, note)
