"""The engine of a run on other processes: a trainer group updates the policy, a fleet of servers samples it.

Weights go from one to the other as a Hugging Face folder. The driver keeps the counts, the versions and the rows since
the last recovery point, so that a trainer that died can be restarted where it was.
"""

import asyncio
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from arise.engines.chat import ChatFormat
from arise.engines.checks import TrainingRow, UpdateCount, check_request, skip_reason, training_rows
from arise.engines.faults import EngineFault
from arise.engines.folders import draft_beside, swap_in
from arise.engines.formats.generic import GenericFormat
from arise.engines.manifest import model_digest, read_manifest, write_manifest
from arise.engines.remote.handover import Handover
from arise.engines.remote.policy import Policy
from arise.engines.remote.trainer import Job, TrainerGroup, TrainerLost, TrainerSpec, as_row
from arise.engines.remote.workers.loop import Taken, UpdateSpec
from arise.engines.stopping import StopRules
from arise.engines.vllm.fleet import Fleet
from arise.engines.vllm.spec import SampledTurn
from arise.method.schedule import learning_rate
from arise.ports import Format
from arise.types import (
    Capabilities,
    Example,
    LossSpec,
    OptimSpec,
    PolicyRef,
    SamplingParams,
    Segment,
    StepStats,
    Tokens,
)

Answer = TypeVar("Answer")
MAX_PROBE = 0.2
"""Largest difference of log-probs between server and trainer right after an update; half precision stays below it."""
log = logging.getLogger(__name__)


class RemoteEngine:
    """Implements `ports.Engine` on a trainer group and a fleet; `open` starts both."""

    def __init__(
        self, policy: Policy, trainer: TrainerSpec, fleet: Fleet, work: Path, *, recover_every: int = 1
    ) -> None:
        self._policy, self._trainer, self._fleet, self._work = policy, trainer, fleet, work
        self._recover_every = recover_every
        self._count, self._published = UpdateCount(), 0
        self._weights = self._first = policy.folder
        self._handover = Handover(work, policy.folder, trainer.lora_rank > 0, trainer.device == "cpu")
        self._stops = StopRules(policy.tokenizer, policy.end_ids)
        self._since: list[Job] = []
        self._recovery: Path | None = None
        self.recoveries = 0
        self._failed = self._closed = False
        self._calls = ThreadPoolExecutor(1, thread_name_prefix="trainer-calls")
        self._group: TrainerGroup | None = None

    async def open(self) -> "RemoteEngine":
        """Start trainer and servers together; on failure nothing is left running."""
        try:
            if self._fleet.given:  # find out about servers that do not answer before a trainer is started
                await self._fleet.reach()
                group = await self._run(self._start_trainer)
                if not self._handover.adapters:
                    self._weights = await self._run(lambda: self._handover.write(group, 0))
                await self._fleet.open(self._weights, 0)
                await self._check_weights()
            else:
                self._weights = self._first = await asyncio.to_thread(self._handover.first)
                await asyncio.gather(self._run(self._start_trainer), self._fleet.open(self._weights, 0))
        except BaseException:
            self._failed = True
            self.close()
            raise
        return self

    def _start_trainer(self) -> TrainerGroup:
        if self._closed:
            raise EngineFault("the engine was closed")
        self._group = TrainerGroup(self._trainer, self._work / "logs")  # set before it runs, so that `close` can end it
        return self._group.start()

    @property
    def version(self) -> int:
        """The policy version used for sampling."""
        return self._fleet.version

    @property
    def tokenizer(self) -> Any:
        """The policy's tokenizer."""
        return self._policy.tokenizer

    @cached_property
    def chat(self) -> ChatFormat:
        """How this policy's tokenizer writes conversations."""
        return ChatFormat(self._policy.tokenizer)

    @cached_property
    def format(self) -> Format:
        """How this policy writes messages, tool calls and reasoning."""
        return self._policy.chat_format or GenericFormat(self._policy.tokenizer)

    def capabilities(self) -> Capabilities:
        """Return what this engine can do."""
        window, lora = self._policy.window, self._handover.adapters
        return Capabilities(full_parameter=not lora, lora=lora, endpoint=False, context_length=window)

    def facts(self) -> Mapping[str, str]:
        """Return facts that two runs must share to be comparable; bit-equality is not promised."""
        trained = self._trained_by
        return {**trained, "sampler": f"vllm {self._fleet.release}", "processes": str(self._trainer.processes)}

    @cached_property
    def _trained_by(self) -> dict[str, str]:
        assert self._group is not None, "open() starts the trainer"
        facts = self._group.facts
        return {"weights": model_digest(self._policy.folder), "trainer": facts["library"], "torch": facts["torch"]}

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, n: int = 1) -> list[Segment]:
        """Sample n continuations of a prompt; safe to call from many coroutines."""
        check_request(prompt_ids, params, self._policy.vocabulary, self._policy.window)
        turns = await asyncio.gather(*(self._fleet.turn(prompt_ids, params, number) for number in range(n)))
        return [self._segment(turn, params.stop) for turn in turns]

    def _segment(self, turn: SampledTurn, stop: tuple[str, ...]) -> Segment:
        """Cut a turn at its first stop string; vLLM continues if that token does not complete a character."""
        end = self._stops.end_of(turn.ids, stop)
        ids, finish = turn.ids[:end], "stop" if end < len(turn.ids) else turn.finish
        return Segment(ids, turn.logprobs[:end], turn.versions[:end], self._stops.text(ids), finish)

    async def score(self, row: Tokens, temperature: float = 1.0) -> Tokens:
        """Return the row with the log-probs that the trained policy gives its generated tokens at `temperature`."""
        given = [as_row(TrainingRow(row, 0.0))]
        answers = await self._guarded(lambda group: group.call_with_rows("score", given, temperature=temperature))
        found = next(answer.arrays["logprob"] for numbers, answer in answers if numbers)
        logprob_U = np.zeros(len(row))
        logprob_U[row.generated_U] = found
        return Tokens(row.ids_U, row.generated_U, logprob_U, np.where(row.generated_U, self.version, -1))

    async def train_step(self, examples: Sequence[Example], loss: LossSpec, optim: OptimSpec) -> StepStats:
        """Take one update of the trained weights (Eqs. 18-19); `publish` makes it sampleable."""
        rows = training_rows(examples, self._policy.window)
        tokens = sum(row.generated_tokens for row in rows)
        rate = learning_rate(self._count.updates, optim.learning_rate, optim.warmup_updates)
        values = asdict(loss) | asdict(optim) | {"learning_rate": rate, "token_count": tokens}
        del values["warmup_updates"]
        job = Job([as_row(row) for row in rows], UpdateSpec(**values))
        taken = await self._guarded(lambda group: group.take(job)) if rows else Taken(0.0, 0.0, 0, 0, 0.0)
        skipped = skip_reason(taken.loss, taken.grad_norm)
        if not skipped:
            self._since.append(job)
        self._count.count(skipped, bool(np.isfinite(taken.grad_norm)))
        kept, clipped, ratio = taken.kept_tokens, taken.dual_clipped_tokens, taken.max_abs_log_ratio
        return StepStats(taken.loss, taken.grad_norm, rate, tokens, kept, clipped, ratio, skipped)

    async def publish(self) -> PolicyRef:
        """Make the trained weights the sampling weights; running turns continue under the new version."""
        await self._publish(self.version + 1)
        return PolicyRef(self.version)

    async def _publish(self, version: int) -> None:
        old = self._weights
        if self._published != self._count.updates:
            self._weights = await self._guarded(lambda group: self._handover.write(group, version))
            self._published = self._count.updates
        await self._fleet.load(self._weights, version)
        await self._check_weights()
        if old not in (self._weights, self._first, self._policy.folder):  # a restarted server begins with the first one
            shutil.rmtree(old, ignore_errors=True)
        if len(self._since) >= self._recover_every:
            await self._save_recovery_point(version)

    async def _check_weights(self) -> None:
        """Raise EngineFault unless every server samples the weights that the trainer holds."""
        prompt = [i % self._policy.vocabulary for i in range(7, 23)]
        for address, turn in (await self._fleet.probe(prompt, SamplingParams(8, seed=self.version))).items():
            ids, made = np.array([*prompt, *turn.ids]), np.arange(len(prompt) + len(turn.ids)) >= len(prompt)
            logprob_U = np.r_[np.zeros(len(prompt)), turn.logprobs]
            scored = await self.score(Tokens(ids, made, logprob_U, np.where(made, self.version, -1)))
            worst = float(np.abs(scored.logprob_U - logprob_U).max())
            if worst > MAX_PROBE:
                raise EngineFault(
                    f"{address} does not sample the weights of version {self.version}: off by {worst:.2f}"
                )

    async def _save_recovery_point(self, version: int) -> None:
        """Save the trainer's state; a trainer that dies later is started from here."""
        folder, old = self._work / f"recovery-{version}", self._recovery
        await self._guarded(lambda group: group.call("save", folder=str(folder)))
        self._recovery, self._since = folder, []
        if old not in (None, folder) and old.parent == self._work:  # a state that was loaded is not ours to remove
            shutil.rmtree(old, ignore_errors=True)

    async def save_state(self, path: Path) -> str:
        """Save everything a resume needs; return the URI for `load_state`."""
        if self._published != self._count.updates:
            raise ValueError("save_state: the weights were trained but not published: call publish() first")
        draft = draft_beside(path)
        await self._guarded(lambda group: group.call("save", folder=str(draft)))
        facts = {"version": self.version, **asdict(self._count), **self._owner}
        await asyncio.to_thread(write_manifest, draft, facts)
        await asyncio.to_thread(swap_in, draft, path)
        return str(path)

    @property
    def _owner(self) -> dict[str, str]:
        assert self._group is not None, "open() starts the trainer"
        parameters, rank = str(self._group.facts["parameters"]), str(self._trainer.lora_rank)
        return {"library": self._trainer.library, "parameters": parameters, "adapters": rank}

    async def load_state(self, uri: str) -> int:
        """Restore the state of `save_state`; return the policy version."""
        facts = await asyncio.to_thread(read_manifest, Path(uri))
        for name, own in self._owner.items():
            if facts.get(name) != own:
                found = f"{name} {facts.get(name)}, here {own}"
                raise ValueError(f"{uri} holds the state of another model or trainer ({found})")
        self._recovery, self._since = Path(uri), []
        await self._guarded(lambda group: group.call("load", folder=uri))
        self._count = UpdateCount(int(facts["updates"]), int(facts["failures"]))
        self._published = -1  # the servers hold other weights even if the version is the same
        await self._publish(int(facts["version"]))
        await self._save_recovery_point(self.version)  # the folder that was loaded may be removed by its owner
        return self.version

    async def export_hf(self, path: Path) -> Path:
        """Export the trained model, adapters merged, as a folder that transformers loads."""
        return await self._export("export", Path(path))

    async def export_adapter(self, path: Path) -> Path:
        """Write the trained adapter as a folder that peft loads onto the base model."""
        return await self._export("export_adapter", Path(path))

    async def _export(self, request: str, path: Path) -> Path:
        draft = draft_beside(path)
        await self._guarded(lambda group: group.call(request, folder=str(draft)))
        self._policy.tokenizer.save_pretrained(draft)
        await asyncio.to_thread(swap_in, draft, path)
        return path

    async def _guarded(self, ask: Callable[[TrainerGroup], Answer]) -> Answer:
        """Call the trainer; if it is lost, restart it from the last recovery point and call it once more."""

        def attempt() -> Answer:
            assert self._group is not None, "open() starts the trainer"
            try:
                return ask(self._group)
            except TrainerLost as fault:
                log.warning("%s\nit is started again from update %d", fault, self._count.updates)
                self._recover()
                return ask(self._group)

        return await self._run(attempt)

    def _recover(self) -> None:
        """Start a new trainer from the last recovery point and repeat the updates since."""
        assert self._group is not None, "open() starts the trainer"
        self._group.close()
        self.recoveries += 1
        group = self._start_trainer()
        if self._recovery is not None:
            group.call("load", folder=str(self._recovery))
        for job in self._since:
            group.take(job)

    async def _run(self, work: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._calls, work)

    def close(self) -> None:
        """Stop trainer and servers and remove the files exchanged between them; keep the logs if a process was lost."""
        self._closed = True
        if self._group is not None:
            self._group.close()
        self._fleet.close()
        self._calls.shutdown()
        for folder in (*self._work.glob("weights-*"), *self._work.glob("recovery-*")):
            shutil.rmtree(folder, ignore_errors=True)
        if not self._failed and not self.recoveries and not self._fleet.restarts:
            shutil.rmtree(self._work, ignore_errors=True)
