"""`arise train` and `arise resume`: build a run, drive it, sum it up."""

import asyncio
import errno
import json
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import tomli_w
from rich.console import Console

from arise.compose.build import OpenStore, RunContext, open_run, require_sound
from arise.config import Config
from arise.config.base import Section
from arise.config.file import load_config
from arise.config.llm import ModelJudge
from arise.engines.faults import EngineFault
from arise.errors import AriseError, Exit
from arise.observe.live import LiveDisplay
from arise.observe.summary import Summary
from arise.observe.terminal import Display, JsonDisplay
from arise.run.configuration import record, recorded, run_config
from arise.run.facts.score import Evaluation
from arise.run.facts.story import run_facts
from arise.run.folder import CONFIG_FILE, RunLock, unwritable
from arise.run.labels import on_the_way
from arise.run.store import RunStore
from arise.train import train

Write = Callable[[str], None]
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}


def start(config: Config, folder: Path, lock: RunLock, write: Write, as_json: bool) -> None:
    """A new run in an empty folder."""
    if (folder / CONFIG_FILE).exists():
        lock.release()
        raise AriseError(
            "storage",
            Exit.STORAGE,
            f"{folder} already holds a run",
            "nothing was changed",
            f"arise resume {folder}, or give another --run-dir",
        )
    checked = False

    @contextmanager
    def opened() -> Iterator[RunStore]:
        nonlocal checked
        checked = True
        with closing(RunStore.open(folder, lock)) as store:
            with store.writing():
                _write_config(folder, config)
            record(config, store, store.note)
            yield store

    try:
        require_sound(config)
        _drive(config, folder, opened, write, as_json)
    finally:
        if not checked:
            lock.withdraw()


def resume(
    folder: Path,
    lock: RunLock,
    write: Write,
    as_json: bool,
    add_budget: float = 0.0,
    allow_judges: Sequence[str] = (),
    allow_changes: Sequence[str] = (),
) -> None:
    """Continue a run exactly where it was committed; what is granted now stays granted.

    An edit of the configuration that would change the run must be asked for by name, and is kept in its record.
    """
    config = granted(load_config(folder / CONFIG_FILE), add_budget, allow_judges)
    with closing(RunStore.open(folder, lock)) as store:
        tell = (JsonDisplay if as_json else Display)(write, config.train.iterations).tell
        if not recorded(store):
            tell(f"no record of this run's configuration exists: {CONFIG_FILE} is taken as it is and recorded now")
        for change in run_config(folder, store, allow_changes)[1]:
            tell(f"changed: {change}")
        if add_budget or allow_judges:
            with store.writing():
                _write_config(folder, config)
        record(config, store, store.note)
        _drive(config, folder, lambda: nullcontext(store), write, as_json)


def granted(config: Config, add_budget: float, allow_judges: Sequence[str]) -> Config:
    """The configuration with more money and with judges that may take over."""
    if add_budget and not config.budget.max_usd:
        raise AriseError(
            "config", Exit.CONFIG, "--add-budget: this run has no cap", "nothing was started", "leave the option out"
        )
    if allow_judges and not isinstance(config.judge, ModelJudge):
        raise AriseError(
            "config",
            Exit.CONFIG,
            f"--allow-judge-change: the judge of this run is of kind {config.judge.kind!r}, not a model by name",
            "nothing was started",
            "leave the option out",
        )
    changes: dict[str, Section] = {
        "budget": config.budget.model_copy(update={"max_usd": config.budget.max_usd + add_budget})
    }
    if isinstance(config.judge, ModelJudge):
        allowed = tuple(dict.fromkeys((*config.judge.allow_change, *allow_judges)))
        changes["judge"] = config.judge.model_copy(update={"allow_change": allowed})
    return config.model_copy(update=changes)


def _write_config(folder: Path, config: Config) -> None:
    draft = folder / f".{CONFIG_FILE}"
    draft.write_text(tomli_w.dumps(config.model_dump(exclude_none=True)))
    draft.replace(folder / CONFIG_FILE)  # whole or not there: a resume reads it


def _drive(config: Config, folder: Path, opened: OpenStore, write: Write, as_json: bool) -> None:
    """Evaluate, train, evaluate, sum up; on a terminal with the live screen."""
    console = Console()
    iterations = config.train.iterations
    if as_json:
        summary = _run(config, folder, opened, JsonDisplay(write, iterations))
        write(json.dumps({"summary": summary.as_json()}))
        return
    if console.is_terminal:
        with LiveDisplay(console, config, folder) as display:
            summary = _run(config, folder, opened, display)
    else:
        summary = _run(config, folder, opened, Display(write, iterations))
    write(summary.as_text())


def _run(config: Config, folder: Path, opened: OpenStore, display: Display) -> Summary:
    """Run everything and return its summary."""

    async def whole() -> Summary:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, task.cancel)
        began = time.perf_counter()
        async with open_run(config, folder, opened, display) as place:
            before = await _evaluated(place, "before")
            display.tell(before.line())
            await _train(place, display)
            after = await _evaluated(place, "after")
            before = await place.judge_again("before")
            display.tell(after.line())
            return _summary(place, before, after, display, time.perf_counter() - began)

    try:
        return asyncio.run(whole())
    except asyncio.CancelledError:
        raise _interrupted(folder) from None
    except EngineFault as fault:
        raise AriseError(
            "numeric",
            Exit.NUMERIC,
            str(fault),
            "the run has ended; every committed iteration is kept",
            "start a new run with a lower optimizer.learning_rate, or in fp32",
        ) from None
    except RuntimeError as error:
        raise _out_of_memory(folder, error) or error from None
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise unwritable(folder, error) from error
    except sqlite3.OperationalError as error:
        raise unwritable(folder, error) from error


def _interrupted(folder: Path) -> AriseError:
    if not (folder / CONFIG_FILE).exists():
        return AriseError(
            "interrupted", Exit.INTERRUPTED, "stopped by you", "no run was started", "the same command starts it"
        )
    return AriseError(
        "interrupted",
        Exit.INTERRUPTED,
        f"stopped by you in {folder}",
        "the last committed iteration and every finished group are kept",
        f"arise resume {folder}",
    )


def _out_of_memory(folder: Path, error: RuntimeError) -> AriseError | None:
    """The message for memory that ran out; torch has no class of its own for that of the CPU."""
    if "allocate memory" not in str(error) and "out of memory" not in str(error):
        return None
    return AriseError(
        "memory",
        Exit.ENGINE,
        f"memory ran out: {str(error).splitlines()[0]}",
        "the run has ended; every committed iteration is kept",
        f"free memory and arise resume {folder}, or start anew with a lower policy.token_budget (updates) or "
        "policy.batch_rows (sampling)",
    )


async def _train(place: RunContext, display: Display) -> None:
    """Algorithm 1, in stretches that end where `evaluation.every` asks for a point of the learning curve."""
    config = place.run.config
    last, every = config.train.iterations, config.evaluation.every
    for stop in range(every, last, every) if every else ():
        if place.state.iteration <= stop:
            until = config.model_copy(update={"train": config.train.model_copy(update={"iterations": stop})})
            await train(replace(place.run, config=until), place.state)
            point = await _evaluated(place, on_the_way(stop), config.evaluation.attempts_on_the_way)
            display.tell(point.line())
    await train(place.run, place.state)


async def _evaluated(place: RunContext, label: str, attempts: int | None = None) -> Evaluation:
    """The named evaluation, taken from the store where an earlier process already made it.

    One that infrastructure ended is made again, unless the policy that it measured has moved on.
    """
    stored = place.stored_evaluation(label, attempts)
    if stored and (stored.rate is not None or (label == "before" and place.state.iteration)):
        return stored
    return await place.evaluate(label, attempts=attempts)


def _summary(place: RunContext, before: Evaluation, after: Evaluation, display: Display, seconds: float) -> Summary:
    """Read the finished run back from its store."""
    store, aside = place.run.store, place.state.set_aside
    all_fail = [iteration.metrics["all_fail"] for iteration in store.iterations()]
    tenth = max(1, len(all_fail) // 10)
    return Summary(
        str(store.folder),
        run_facts(store),
        before,
        after,
        store.event_counts(),
        len(place.state.pool),
        {task: aside.faulty[task].in_a_row for task in aside.away(place.state.iteration)},
        [_mean(all_fail[:tenth]), _mean(all_fail[-tenth:])],
        display.trust.summary(store) if display.trust else [],
        seconds,
        dict(sorted(display.seconds.items(), key=lambda item: -item[1])),
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
