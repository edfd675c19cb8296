"""`arise train` and `arise resume`: build a run, run it and summarize it."""

import asyncio
import errno
import json
import logging
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

import tomli_w
from rich.console import Console

from arise.compose.build import OpenStore, RunContext, open_run, require_sound
from arise.compose.endings import interrupted, out_of_memory
from arise.compose.imports import check_imports
from arise.compose.starts import cached_start
from arise.config import Config, WorldTasks
from arise.config.base import Section
from arise.config.file import load_config
from arise.config.llm import ModelJudge
from arise.engines.faults import EngineFault
from arise.engines.local.pretrained import intact
from arise.errors import AriseError, Exit
from arise.observe.forecast import TimeForecast, stages
from arise.observe.live import LiveDisplay
from arise.observe.messages import shown_by
from arise.observe.summary import Summary
from arise.observe.terminal import Display, JsonDisplay
from arise.run.configuration import record, recorded, run_config
from arise.run.facts.score import Evaluation
from arise.run.facts.story import run_facts
from arise.run.folder import CONFIG_FILE, RunLock, unwritable
from arise.run.labels import on_the_way
from arise.run.store import RunStore
from arise.train import train

log = logging.getLogger(__name__)

Write = Callable[[str], None]
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}


def start(
    config: Config, folder: Path, lock: RunLock, write: Write, as_json: bool = False, live: bool = True
) -> dict[str, Any]:
    """Train in a new run folder and return the summary of the run."""
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
        return _drive(config, folder, opened, write, as_json, live)
    finally:
        if not checked:
            lock.withdraw()


def resume(
    folder: Path,
    lock: RunLock,
    write: Write,
    as_json: bool = False,
    add_budget: float = 0.0,
    allow_judges: Sequence[str] = (),
    allow_changes: Sequence[str] = (),
    live: bool = True,
) -> dict[str, Any]:
    """Continue a run from its last commit; added budget and allowed judges are saved for later resumes.

    Edits of the configuration that change the run must be named in `allow_changes` and are recorded.
    """
    config = granted(load_config(folder / CONFIG_FILE), add_budget, allow_judges)
    with closing(RunStore.open(folder, lock)) as store:
        check_imports(config)
        before = (JsonDisplay if as_json else Display)(write, config.train.iterations)
        with shown_by(before.tell):
            if not recorded(store):
                log.info("no record of this run's configuration exists: %s is recorded as it is now", CONFIG_FILE)
            for change in run_config(folder, store, allow_changes)[1]:
                log.info("changed: %s", change)
        if add_budget or allow_judges:
            with store.writing():
                _write_config(folder, config)
        record(config, store, store.note)
        return _drive(config, folder, lambda: nullcontext(store), write, as_json, live)


def granted(config: Config, add_budget: float, allow_judges: Sequence[str]) -> Config:
    """Return the configuration with `add_budget` more dollars and with additional allowed judges."""
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
    draft.replace(folder / CONFIG_FILE)  # atomic, because a resume reads it


def _drive(config: Config, folder: Path, opened: OpenStore, write: Write, as_json: bool, live: bool) -> dict[str, Any]:
    """Evaluate, train, evaluate and summarize; show the live screen on a terminal, unless `live` is off."""
    console = Console()
    iterations = config.train.iterations
    if as_json:
        summary = _run(config, folder, opened, JsonDisplay(write, iterations))
        write(json.dumps({"summary": summary.as_json()}))
        return summary.as_json()
    if live and console.is_terminal:
        with LiveDisplay(console, config, folder) as display:
            summary = _run(config, folder, opened, display)
    else:
        summary = _run(config, folder, opened, Display(write, iterations))
    write(summary.as_text())
    return summary.as_json()


def _run(config: Config, folder: Path, opened: OpenStore, display: Display) -> Summary:
    """Run everything and return its summary."""

    async def whole() -> Summary:
        task = asyncio.current_task()
        assert task is not None
        if current_thread() is main_thread():
            for name in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(name, task.cancel)
        began = time.perf_counter()
        if isinstance(config.tasks, WorldTasks):
            cold = not intact(cached_start(config))
            display.forecast = TimeForecast(stages(config, config.tasks.eval_tasks, warm_start=cold))
        async with open_run(config, folder, opened, display) as place:
            if display.forecast is None:  # only now are the tasks known
                display.forecast = TimeForecast(stages(config, len(place.evaluator.tasks), warm_start=False))
            before = await _evaluated(place, "before")
            log.info("%s", before.line())
            await _train(place)
            after = await _evaluated(place, "after")
            before = await place.judge_again("before")
            log.info("%s", after.line())
            return _summary(place, before, after, display, time.perf_counter() - began)

    try:
        with shown_by(display.tell, display.reached):
            return asyncio.run(whole())
    except asyncio.CancelledError:
        raise interrupted(folder) from None
    except EngineFault as fault:
        raise AriseError(
            "numeric",
            Exit.NUMERIC,
            str(fault),
            "the run has ended; every committed iteration is kept",
            "start a new run with a lower optimizer.learning_rate, or in fp32",
        ) from None
    except RuntimeError as error:
        raise out_of_memory(folder, error) or error from None
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise unwritable(folder, error) from error
    except sqlite3.OperationalError as error:
        raise unwritable(folder, error) from error


async def _train(place: RunContext) -> None:
    """Run Algorithm 1 to its end, with the scheduled evaluations."""
    evaluation = place.run.config.evaluation
    for point in evaluation.points(place.run.config.train.iterations):
        if place.state.iteration <= point:
            await train(place.run, place.state, until=point)
            found = await _evaluated(place, on_the_way(point), evaluation.attempts_on_the_way)
            log.info("%s", found.line())
    await train(place.run, place.state)


async def _evaluated(place: RunContext, label: str, attempts: int | None = None) -> Evaluation:
    """Return the named evaluation from the store, or run it.

    An evaluation lost to infrastructure faults is repeated, unless the measured policy has already been updated.
    """
    stored = place.stored_evaluation(label, attempts)
    if stored and (stored.rate is not None or (label == "before" and place.state.iteration)):
        return stored
    return await place.evaluate(label, attempts=attempts)


def _summary(place: RunContext, before: Evaluation, after: Evaluation, display: Display, seconds: float) -> Summary:
    """Return the summary of a finished run, read from its store."""
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
        display.judge_monitor.summary(store) if display.judge_monitor else [],
        seconds,
        dict(sorted(display.seconds.items(), key=lambda item: -item[1])),
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
