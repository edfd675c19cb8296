"""Run Harbor trials for ARISE: `python worker.py SOCKET`, JSON lines, with harbor and nothing of ARISE installed.

`trial` runs a whole trial of Harbor. `open` starts one whose agent waits: ARISE uses its environment with `run`, `put`
and `get`, and `verify` lets it go on to its tests. The end of the connection, also by a killed run, stops everything.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.models.trial.config import TrialConfig
from harbor.trial.trial import Trial

MODULE = "arise_harbor_worker"
LINE_BYTES = 1 << 26
OUTPUT_CHARS = 1 << 20
Fields = dict[str, Any]


class Box:
    """The environment of one trial while ARISE uses it."""

    def __init__(self) -> None:
        self.environment: Any = None
        self.ready, self.released = asyncio.Event(), asyncio.Event()
        self.trial: asyncio.Task[Fields] | None = None


BOXES: dict[str, Box] = {}


class WaitingAgent(BaseAgent):  # type: ignore[misc] # Harbor is not installed where types are checked
    """An agent that leaves the environment to ARISE and returns when it is told to."""

    def __init__(self, *args: Any, box: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.box = BOXES[box]

    @staticmethod
    def name() -> str:
        return "arise"

    def version(self) -> str:
        return "1"

    async def setup(self, environment: Any) -> None:
        """Need nothing inside the environment."""

    async def run(self, instruction: str, environment: Any, context: Any) -> None:  # noqa: ARG002 - Harbor's interface
        """Wait until ARISE asks for verification."""
        self.box.environment = environment
        self.box.ready.set()
        await self.box.released.wait()


async def _trial(config: Fields) -> Fields:
    """Run a trial to its end and return its result."""
    trial = await Trial.create(TrialConfig.model_validate(config))
    return dict((await trial.run()).model_dump(mode="json"))


async def trial(asked: Fields) -> Fields:
    """Run a whole trial with an agent of Harbor."""
    return {"result": await _trial(asked["config"])}


async def open_box(asked: Fields) -> Fields:
    """Start a trial and return when its environment is ready for commands."""
    name = asked["box"]
    box = BOXES[name] = Box()
    agent = {"import_path": f"{MODULE}:WaitingAgent", "kwargs": {"box": name}, "override_timeout_sec": asked["seconds"]}
    box.trial = asyncio.create_task(_trial(asked["config"] | {"agent": agent}))
    ready = asyncio.create_task(box.ready.wait())
    try:
        await asyncio.wait({box.trial, ready}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        await close_box({"box": name})
        raise
    finally:
        ready.cancel()
    if not box.ready.is_set():
        failed = (await box.trial)["exception_info"] or {}
        raise RuntimeError(f"{failed.get('exception_type')}: {failed.get('exception_message')}")
    found = await box.environment.exec("pwd")
    return {"workdir": (found.stdout or "/").strip()}


async def run(asked: Fields) -> Fields:
    """Run one command in the environment."""
    environment, seconds = BOXES[asked["box"]].environment, float(asked["seconds"])
    try:
        async with asyncio.timeout(seconds + 30):
            done = await environment.exec(
                asked["command"], env=asked["env"], user=asked["user"], timeout_sec=max(1, round(seconds))
            )
    except TimeoutError:
        return {"output": "", "exit_code": 124, "ended": "timeout", "truncated": False}
    except RuntimeError as error:  # how compose environments report their time limit
        if "timed out" not in str(error).lower():
            raise
        return {"output": "", "exit_code": 124, "ended": "timeout", "truncated": False}
    said = (done.stdout or "") + (done.stderr or "")
    cut = len(said) > OUTPUT_CHARS
    return {"output": said[:OUTPUT_CHARS], "exit_code": done.return_code, "ended": "exit", "truncated": cut}


async def put(asked: Fields) -> Fields:
    """Copy a file or a folder of the host into the environment."""
    environment, source = BOXES[asked["box"]].environment, Path(asked["source"])
    await (environment.upload_dir if source.is_dir() else environment.upload_file)(source, asked["target"])
    return {}


async def get(asked: Fields) -> Fields:
    """Copy a file or a folder of the environment to the host."""
    environment, source, target = BOXES[asked["box"]].environment, asked["source"], Path(asked["target"])
    if await environment.is_dir(source):
        target.mkdir(parents=True, exist_ok=True)
        await environment.download_dir(source, target)
    elif await environment.is_file(source):
        target.parent.mkdir(parents=True, exist_ok=True)
        await environment.download_file(source, target)
    else:
        return {"found": False}
    return {"found": True}


async def verify(asked: Fields) -> Fields:
    """End the agent's phase and return the result of the trial."""
    box = BOXES[asked["box"]]
    assert box.trial is not None
    box.released.set()
    return {"result": await asyncio.shield(box.trial)}


async def close_box(asked: Fields) -> Fields:
    """Stop the environment, whatever its trial is doing."""
    box = BOXES.pop(asked["box"], None)
    if box is not None and box.trial is not None:
        box.trial.cancel()
        await asyncio.gather(box.trial, return_exceptions=True)
    return {}


VERBS: dict[str, Callable[[Fields], Awaitable[Fields]]] = {
    "trial": trial,
    "open": open_box,
    "run": run,
    "put": put,
    "get": get,
    "verify": verify,
    "close": close_box,
}


class Worker:
    """Answer each request in its own task; `cancel` ends one by its id."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.tasks: dict[int, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Serve until the connection ends, then stop every environment."""
        self.say({"ready": True, "harbor": version("harbor")})
        try:
            while line := await self.reader.readline():
                asked = json.loads(line)
                if asked["verb"] == "cancel":
                    task = self.tasks.get(asked["of"])
                    task and task.cancel()
                    continue
                task = asyncio.create_task(self.answer(asked))
                self.tasks[asked["id"]] = task
                task.add_done_callback(partial(self.forget, asked["id"]))
        finally:
            for task in (tasks := tuple(self.tasks.values())):
                task.cancel()
            await asyncio.gather(*tasks, *(close_box({"box": name}) for name in tuple(BOXES)), return_exceptions=True)

    def forget(self, number: int, _: object) -> None:
        """Drop a finished request."""
        self.tasks.pop(number, None)

    async def answer(self, asked: Fields) -> None:
        """Answer one request; every error is an answer."""
        try:
            self.say({"id": asked["id"], "answer": await VERBS[asked["verb"]](asked)})
        except asyncio.CancelledError:
            self.say({"id": asked["id"], "error": "cancelled"})
        except (Exception, SystemExit) as error:  # Harbor ends its own checks with SystemExit
            self.say({"id": asked["id"], "error": f"{type(error).__name__}: {error}"})

    def say(self, value: Fields) -> None:
        """Send one line, unless the other side is gone."""
        if not self.writer.is_closing():
            self.writer.write(json.dumps(value).encode() + b"\n")


async def main(path: str) -> None:
    """Connect to ARISE and serve."""
    sys.modules[MODULE] = sys.modules["__main__"]  # so that Harbor finds WaitingAgent with the state of this process
    reader, writer = await asyncio.open_unix_connection(path, limit=LINE_BYTES)
    await Worker(reader, writer).serve()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
