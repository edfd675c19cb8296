"""The policy of a run outside of it: its checkpoint as a model folder, and a conversation with it."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from arise.compose.evaluations import last_iteration, require_checkpoint
from arise.compose.policies import cached_start, open_engine
from arise.compose.registry import base_prompt, format_of
from arise.compose.sandboxes import open_sandboxes
from arise.config import Config
from arise.engines.local import LocalEngine
from arise.engines.local.pretrained import intact
from arise.errors import AriseError, Exit
from arise.ports import Engine, FormatError, SandboxPool
from arise.run.configuration import run_config
from arise.run.reader import RunReader
from arise.types import Message, SamplingParams

Write = Callable[[str], None]


@asynccontextmanager
async def trained_engine(folder: Path, iteration: int | None) -> AsyncIterator[tuple[Config, Engine, int]]:
    """The run's engine at a checkpoint, the last by default, 0 for the model it started from."""
    with RunReader.open(folder) as reader:
        config, _ = run_config(folder, reader)
    iteration = last_iteration(folder) if iteration is None else iteration
    checkpoint = require_checkpoint(folder, iteration) if iteration else None
    async with _for_a_warm_start(config, folder) as sandboxes:
        engine = await open_engine(config, sandboxes)
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
async def _for_a_warm_start(config: Config, folder: Path) -> AsyncIterator[SandboxPool]:
    """Sandboxes, opened only where the model that the run started from must be made again."""
    made = config.model.kind == "pretrained" and not config.model.demonstrations
    if made or intact(cached_start(config)):
        yield cast(SandboxPool, None)  # no demonstration is made
        return
    async with open_sandboxes(config, folder) as (sandboxes, _):
        yield sandboxes


async def export_model(folder: Path, form: str, out: Path, iteration: int | None) -> int:
    """Write a checkpoint as a Hugging Face folder: `hf` with merged weights, `peft` the adapter alone."""
    async with trained_engine(folder, iteration) as (_, engine, exported):
        if form == "hf":
            await engine.export_hf(out)
            return exported
        if not isinstance(engine, LocalEngine) or not engine.capabilities().lora:
            raise AriseError(
                "export",
                Exit.CONFIG,
                f"{folder} trains all weights, so it has no adapter",
                "nothing was written",
                "export it with --format hf",
            )
        await engine.export_adapter(out)
        return exported


async def chat(folder: Path, iteration: int | None, lines: Iterable[str], write: Write, max_tokens: int) -> None:
    """Answer each line as the next message of one conversation; no tool is offered and no evolved skill shown."""
    async with trained_engine(folder, iteration) as (config, engine, at):
        write(f"{folder} at iteration {at}; an empty line or the end of input ends the conversation")
        dialogue = _Dialogue(engine, base_prompt(config) if config.agent.kind == "tools" else "", config)
        for line in lines:
            if not line.strip():
                return
            write(await dialogue.answer(line.strip(), max_tokens))


class _Dialogue:
    def __init__(self, engine: Engine, system: str, config: Config) -> None:
        self._engine, self._chat, self._settings = engine, format_of(engine), config.evaluation
        self._opening = [Message("system", system)] if system else []
        self._ids: list[int] = []
        self._seed = config.train.seed

    async def answer(self, text: str, max_tokens: int) -> str:
        """The reply to one message; a conversation that no longer fits starts anew, and says so."""
        said, note = Message("user", text), ""
        window = self._engine.capabilities().context_length
        ids = self._chat.extend(self._ids, [said]) if self._ids else None
        if self._ids and (ids is None or len(ids) >= window):
            ids, note = None, "(the window is full: a new conversation begins)\n"
        try:
            ids = self._chat.prompt([*self._opening, said]) if ids is None else ids
        except FormatError as error:
            return f"(this model's chat template cannot show that: {error})"
        if len(ids) >= window:
            return f"(the message is too long: {len(ids)} tokens, the window is {window})"
        settings = SamplingParams(
            max_tokens, (), self._settings.temperature, self._settings.top_p, self._seed, conversation="chat"
        )
        (segment,) = await self._engine.sample(ids, settings)
        self._ids = [*ids, *segment.ids]
        reply = self._chat.read(segment.ids, (), ids)
        thought = f"({reply.reasoning})\n" if reply.reasoning else ""
        return note + thought + reply.text + (" ..." if segment.finish != "stop" else "")
