"""`arise train`, `arise resume` and `arise eval`: build a run, drive it, sum it up."""

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import tomli_w
from rich.console import Console

from arise.build import Workplace, workplace
from arise.config import Config
from arise.config_base import Section
from arise.config_file import load_config
from arise.config_models import ModelJudge
from arise.display import Display
from arise.errors import AriseError, Exit
from arise.evaluation.attempts import Evaluation
from arise.live import LiveDisplay
from arise.store import RunStore
from arise.train import train

Write = Callable[[str], None]
CONFIG_FILE = "config.toml"


def start(config: Config, folder: Path, write: Write) -> None:
    """A new run in an empty folder."""
    if (folder / CONFIG_FILE).exists():
        raise AriseError(
            "storage",
            Exit.STORAGE,
            f"{folder} already holds a run",
            "nothing was changed",
            f"arise resume {folder}, or give another --run-dir",
        )
    folder.mkdir(parents=True, exist_ok=True)
    store = RunStore.open(folder)
    try:
        _write_config(folder, config)
        _drive(config, store, write)
    finally:
        store.close()


def resume(folder: Path, write: Write, add_budget: float = 0.0, allow_judges: Sequence[str] = ()) -> None:
    """Continue a run exactly where it was committed; what is granted now stays granted."""
    config = granted(run_config(folder), add_budget, allow_judges)
    store = RunStore.open(folder)
    try:
        if add_budget or allow_judges:
            _write_config(folder, config)
        _drive(config, store, write)
    finally:
        store.close()


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
    draft.write_text(tomli_w.dumps(config.model_dump()))
    draft.replace(folder / CONFIG_FILE)  # whole or not there: a resume reads it


def run_config(folder: Path) -> Config:
    """The configuration a run was started with."""
    if not (folder / CONFIG_FILE).is_file():
        raise AriseError(
            "storage",
            Exit.STORAGE,
            f"{folder} holds no run",
            "nothing was done",
            "name a folder that `arise train` made",
        )
    return load_config(folder / CONFIG_FILE)


def _drive(config: Config, store: RunStore, write: Write) -> None:
    """Evaluate, train, evaluate, sum up; on a terminal with the live screen."""
    console = Console()
    if console.is_terminal:
        with LiveDisplay(console, config.train.iterations, store.folder.name) as display:
            summary = _run(config, store, display)
    else:
        summary = _run(config, store, Display(write, config.train.iterations))
    for line in summary:
        write(line)


def _run(config: Config, store: RunStore, display: Display) -> list[str]:
    """The whole run; gives the lines that sum it up."""

    async def whole() -> list[str]:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, task.cancel)
        began = time.perf_counter()
        async with workplace(config, store, display) as place:
            before = await _evaluated(place, "before")
            display.tell(before.line())
            await train(place.run, place.state)
            after = await _evaluated(place, "after")
            display.tell(after.line())
            return _summary(place, before, after, display, time.perf_counter() - began)

    try:
        return asyncio.run(whole())
    except asyncio.CancelledError:
        raise AriseError(
            "interrupted",
            Exit.INTERRUPTED,
            f"stopped at your word in {store.folder}",
            "the last committed iteration and every finished group are kept",
            f"arise resume {store.folder}",
        ) from None


async def _evaluated(place: Workplace, label: str) -> Evaluation:
    """The named evaluation, taken from the store where an earlier process already made it."""
    stored = place.stored_evaluation(label)
    return stored or await place.evaluate(label)


def _summary(place: Workplace, before: Evaluation, after: Evaluation, display: Display, seconds: float) -> list[str]:
    """What a person wants to know at the end, and the next command to type."""
    query = place.run.store.query
    kinds = dict(query("SELECT kind, COUNT(*) FROM events GROUP BY kind"))
    all_fail = [row[0] for row in query("SELECT json_extract(metrics, '$.all_fail') FROM iterations ORDER BY k")]
    tenth = max(1, len(all_fail) // 10)
    total = sum(display.seconds.values()) or 1.0
    longest_first = sorted(display.seconds.items(), key=lambda item: -item[1])
    parts = ", ".join(f"{name} {100 * spent / total:.0f} %" for name, spent in longest_first)
    (low, high), (base_low, base_high) = after.interval, before.interval
    trust = display.trust.summary(place.run.store) if display.trust else []
    return [
        "",
        "held-out pass rate, no skills shown",
        f"  before {before.rate:5.1f} %  (95 % {base_low:.1f}-{base_high:.1f})",
        f"  after  {after.rate:5.1f} %  (95 % {low:.1f}-{high:.1f})",
        f"rubrics: {kinds.get('born', 0)} born, {kinds.get('retire', 0)} retired, {len(place.state.pool)} in the pool; "
        f"skills: {kinds.get('activate', 0)} shown, {kinds.get('hide', 0)} hidden, {kinds.get('refine', 0)} refined",
        f"all-fail groups an iteration: {_mean(all_fail[:tenth]):.1f} first, {_mean(all_fail[-tenth:]):.1f} last",
        *trust,
        f"time: {seconds:.0f} s; of an iteration: {parts}",
        f"next: arise eval {place.run.store.folder}",
    ]


def evaluate_run(folder: Path, label: str, write: Write) -> Evaluation:
    """Held-out attempts with a run's last checkpoint."""
    config, store = run_config(folder), RunStore.open(folder)

    async def whole() -> Evaluation:
        async with workplace(config, store, Display(write, config.train.iterations)) as place:
            return await place.evaluate(label, place.state.pool)

    try:
        return asyncio.run(whole())
    finally:
        store.close()


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
