"""The endpoint compared with direct sampling: the same conversations, the same number of tokens, on one engine.

    python -m benchmarks.endpoint             the small model of `make train`, and the memory that sessions hold
    python -m benchmarks.endpoint smollm2     a model of SmolLM2's shape, random weights

32 conversations of four turns run at once. Directly, each is rendered, sampled, recorded, read and extended, as the
built-in agent does; through the endpoint, a client process sends the whole history over HTTP each time, as a harness
does. The two alternate, so that a busy machine slows both. Processor time is that of the serving process; what the
clients spend is a harness's own.
"""

import asyncio
import json
import statistics
import sys
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from arise.endpoint.history import PromptOrigin
from arise.endpoint.policy import Policy
from arise.endpoint.rows import export
from arise.endpoint.serving import Endpoint, on_socket
from arise.endpoint.sessions import CallLimits, Session
from arise.engines.formats.generic import GenericFormat
from arise.engines.local import LocalEngine
from arise.rollouts.token_record import TokenRecord
from arise.types import Capabilities, SamplingParams, Segment
from arise.types.chat import Message, ToolSpec
from benchmarks.conversations import CORPUS, fresh_model

CONVERSATIONS, TURNS, ROUNDS = 32, 4, 5
TOKENS = {"small": 48, "smollm2": 16}
NEVER = [1 << 30]
SYSTEM, TASK = "\n".join(CORPUS)[:3000], "Count the lines of every file and write the sum to out.txt."
RESULT = "exit code 0, 3 lines of output were written to out.txt\n" * 4
BASH = ToolSpec("bash", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
CLIENTS = Path(__file__).with_name("endpoint_clients.py")


def engine_of(name: str) -> tuple[LocalEngine, GenericFormat]:
    """The engine and the format of a model; no token ends a turn, so that both sides make the same number."""
    loaded = fresh_model()
    model: Any = loaded.model
    if name == "smollm2":
        shape = LlamaConfig(
            vocab_size=len(loaded.tokenizer), hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
            num_attention_heads=9, num_key_value_heads=3, max_position_embeddings=8192, tie_word_embeddings=True,
        )  # fmt: skip
        torch.manual_seed(0)
        model = LlamaForCausalLM(shape).eval()
    model.config.max_position_embeddings = 8192
    engine = LocalEngine(model, loaded.tokenizer, end_ids=NEVER, context_length=8192)
    return engine, GenericFormat(loaded.tokenizer)


def opening(round_: int, number: int) -> list[Message]:
    """The first messages of a conversation; no two rounds share a prompt, so no cache helps the second."""
    return [Message("system", f"round {round_}. {SYSTEM}"), Message("user", f"{TASK} Part {number}.")]


async def direct(engine: LocalEngine, chat: GenericFormat, round_: int, tokens: int) -> None:
    """Sample the conversations without the endpoint."""

    async def one(number: int) -> None:
        record = TokenRecord(chat.prompt(opening(round_, number), [BASH]))
        for turn in range(TURNS):
            prompt = list(record.ids)
            params = SamplingParams(tokens, seed=round_, conversation=f"{round_}/{number}")
            (segment,) = await engine.sample(prompt, params)
            record.add(segment)
            reply = chat.read(segment.ids, [BASH], prompt[-32:])
            assert isinstance(reply.text, str)
            if turn < TURNS - 1:
                longer = chat.extend(record.ids, [Message("user", RESULT)], [BASH])
                assert longer is not None
                record.ids = longer
        assert record.row().generated_U.sum() == TURNS * tokens

    await asyncio.gather(*(one(number) for number in range(CONVERSATIONS)))


async def served(
    endpoint: Endpoint, clients: asyncio.subprocess.Process, policy: Policy, round_: int, tokens: int
) -> None:
    """Sample them through the endpoint; the client process begins when it reads a line, and answers one at the end."""
    sessions = [Session(policy, CallLimits(0, tokens), f"{round_}/{n}", round_) for n in range(CONVERSATIONS)]
    for session in sessions:
        endpoint.sessions.add(session)
    openings = [
        [{"role": message.role, "content": message.text} for message in opening(round_, n)]
        for n in range(CONVERSATIONS)
    ]
    work = {"keys": [session.token for session in sessions], "openings": openings, "turns": TURNS, "result": RESULT}
    assert clients.stdin is not None
    assert clients.stdout is not None
    clients.stdin.write(json.dumps(work).encode() + b"\n")
    assert (await clients.stdout.readline()).strip() == b"done"
    for session in sessions:
        record = export(session.history)
        assert len(record.rows) == 1
        assert record.starts[PromptOrigin.EXTENDED.value] == TURNS - 1
        await endpoint.sessions.end(session)


async def overhead(name: str) -> None:
    """Alternate both ways and print the ratio of their times."""
    engine, chat = engine_of(name)
    tokens, spent = TOKENS[name], dict[str, list[tuple[float, float]]](direct=[], endpoint=[])
    async with on_socket() as endpoint:
        clients = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(CLIENTS), str(endpoint.socket),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            for round_ in range(ROUNDS + 1):
                for way in ("direct", "endpoint") if round_ % 2 else ("endpoint", "direct"):
                    await engine.publish()  # forgets every prompt
                    begun = time.perf_counter(), time.process_time()
                    if way == "direct":
                        await direct(engine, chat, 2 * round_, tokens)
                    else:
                        await served(endpoint, clients, Policy(engine, chat), 2 * round_ + 1, tokens)
                    if round_:  # the first round warms up
                        spent[way].append((time.perf_counter() - begun[0], time.process_time() - begun[1]))
        finally:
            clients.kill()
            await clients.wait()
            engine.close()
    total = CONVERSATIONS * TURNS * tokens
    print(f"\n{name}: {CONVERSATIONS} conversations x {TURNS} turns x {tokens} tokens, {ROUNDS} rounds, median")
    for way, rounds in spent.items():
        wall, cpu = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"  {way:9} {total / wall:7.0f} tokens/s  {wall:6.2f} s  {cpu:6.2f} s of processor time")
    for title, at in (("wall", 0), ("processor", 1)):
        ratios = [two[at] / one[at] for one, two in zip(spent["direct"], spent["endpoint"], strict=True)]
        print(f"  endpoint / direct, {title}: {statistics.median(ratios):.3f} ({_listed(ratios)})")


def _listed(ratios: Sequence[float]) -> str:
    return ", ".join(f"{ratio:.3f}" for ratio in ratios)


class _Instant:
    """Answers at once with the same tokens: what remains is the endpoint's own."""

    def capabilities(self) -> Capabilities:
        return Capabilities(False, False, False, 1 << 20)

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, n: int = 1) -> list[Segment]:
        del prompt_ids, params, n
        return [Segment((70,) * 100, (-0.1,) * 100, (0,) * 100, "", "stop")]


async def memory() -> None:
    """Print what one long session holds at each length, and what is left of a thousand ended ones."""
    from arise.endpoint.exchange import Ask

    chat = GenericFormat(fresh_model().tokenizer)
    policy = Policy(_Instant(), chat)

    async def talk(turns: int) -> Session:
        session = Session(policy)
        messages = [Message("system", SYSTEM), Message("user", TASK)]
        for turn in range(turns):
            ask = Ask(tuple(messages), (BASH,))
            answer = await session.answer(ask, f"{turn}".encode())
            messages += [answer.reply, Message("user", f"{turn} {RESULT}")]
        return session

    await talk(2)
    tracemalloc.start()
    for turns in (50, 100, 200):
        before = tracemalloc.get_traced_memory()[0]
        session = await talk(turns)
        held, tokens = tracemalloc.get_traced_memory()[0] - before, len(export(session.history).rows[0])
        each = f"{held / 2**20:.1f} MiB, {held / tokens:.0f} bytes a token"
        print(f"  one session of {turns:3} turns, {tokens:6} tokens: {each}")
        del session
    endpoint = Endpoint(Path())
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(1000):
        session = await talk(3)
        endpoint.sessions.add(session)
        await endpoint.sessions.end(session)
    del session
    left = tracemalloc.get_traced_memory()[0] - before
    print(f"  left of 1000 ended sessions: {left / 1000:.0f} bytes each")


if __name__ == "__main__":
    chosen = sys.argv[1:] or ["small"]
    for name in chosen:
        asyncio.run(overhead(name))
    if "small" in chosen:
        print("\nmemory of the endpoint")
        asyncio.run(memory())
