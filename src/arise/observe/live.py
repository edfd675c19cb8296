"""The live terminal: one screen that is redrawn after every iteration."""

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from arise.config import Config
from arise.observe.terminal import Display, no_update, pool_change, unguided
from arise.observe.waits import Wait
from arise.run.facts.judging import judge_note
from arise.run.pool_rows import event_words
from arise.run.record import IterationRecord
from arise.run.summaries import weakest_cell
from arise.text import numbers
from arise.text.escape import visible
from arise.text.progress import Reached
from arise.types import PoolEvent

BARS = "▁▂▃▄▅▆▇█"
KEPT_MESSAGES, KEPT_EVENTS, KEPT_WRONG = 6, 4, 3
LOOK_BACK = 10
"""Number of iterations back that the pass rate is compared with."""


def sparkline(values: Sequence[float | None], width: int = 24) -> str:
    """Draw the last values, between 0 and 1, as bars, with gaps for missing values."""
    return "".join(
        " " if value is None else BARS[min(len(BARS) - 1, int(value * len(BARS)))] for value in values[-width:]
    )


def _rates(event: PoolEvent) -> str:
    """Write the pass rate of an event's window, and the unguided rate if some rollouts were guided."""
    if not event.evaluations:
        return ""
    every, alone = f" at {numbers.counted_rate(event.passes, event.evaluations)}", event.unguided_evaluations
    if alone == event.evaluations:
        return every
    return f"{every}, unguided {numbers.counted_rate(event.unguided_passes, alone)}"


def _bar(wait: Wait) -> Table:
    """Draw a wait: a bar, the counts and the estimate."""
    grid = Table.grid(padding=(0, 1))
    grid.add_row(
        ProgressBar(total=max(1, wait.reached.total), completed=wait.reached.done, width=24), Text(visible(str(wait)))
    )
    return grid


class LiveDisplay(Display):
    """Show the numbers of the plain lines on one screen; use it as a context manager."""

    def __init__(self, console: Console, config: Config, folder: Path) -> None:
        super().__init__(self._remember, config.train.iterations)
        self._console, self._config, self._folder = console, config, folder
        self._messages: list[str] = []
        self._history: list[Mapping[str, float]] = []
        self._events: list[PoolEvent] = []
        self._rows: list[tuple[str, str]] = []
        self._wrong: list[str] = []
        self._done = 0
        self._saved = ""
        self._alarm = ""
        self._began = time.monotonic()
        # Redrawn at intervals, so that elapsed time and estimates advance while a wait reports nothing.
        self._live = Live(console=console, get_renderable=self._screen, refresh_per_second=1)

    def __enter__(self) -> "LiveDisplay":
        self._live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.__exit__(None, None, None)

    def show(self, record: IterationRecord, spent: float) -> None:  # noqa: ARG002
        """Add the iteration and redraw the screen."""
        self._history.append(record.metrics)
        self._done = record.iteration
        self._saved = f"   checkpoint {self._done} saved" if record.checkpoint else ""
        if record.update:
            self._events += record.update.evolution.events
            self._wrong = self.judge_monitor.still_wrong(KEPT_WRONG) if self.judge_monitor else []
        self._rows = [
            ("tasks", self._tasks()),
            ("rubrics", self._rubrics()),
            ("sampling", self._sampling(record)),
            ("judge", self._judge()),
            ("update", self._update()),
        ]
        self._live.refresh()

    def reached(self, reached: Reached) -> None:
        """Draw a long wait as a bar as soon as it begins."""
        self._foresee(reached)
        known = {wait.reached.what for wait in self._waits.under_way()}
        self._waits.take(reached)
        if not reached.over and reached.what not in known:
            self._live.refresh()

    def warn(self, alarm: str) -> None:
        """Keep the alarm on the screen."""
        self._alarm = alarm
        self._live.refresh()

    def _remember(self, message: str) -> None:
        self._messages = [*self._messages, message][-KEPT_MESSAGES:]
        self._live.refresh()

    def _time(self) -> str:
        left = self.seconds_left
        coming = f", about {numbers.duration(left)} left" if left else ""
        return f"{numbers.duration(time.monotonic() - self._began)} elapsed{coming}{self._saved}"

    def _tasks(self) -> str:
        m, passes = self._history[-1], [h.get("pass_rate") for h in self._history]
        last, earlier = passes[-1], passes[-1 - LOOK_BACK] if len(passes) > LOOK_BACK else None
        change = ""
        if last is not None and earlier is not None:
            change = f" ({numbers.difference(last - earlier)} points over {LOOK_BACK} iterations)"
        groups = f"groups: {m['mixed']:.0f} mixed, {m['all_fail']:.0f} all-fail, {m['all_pass']:.0f} all-pass"
        return f"pass {numbers.percent(last)} {sparkline(passes)}{change}   {groups}"

    def _rubrics(self) -> str:
        m, rewards = self._history[-1], [h.get("rubric_reward") for h in self._history]
        every = self._config.pool.update_every
        last = max((event.iteration for event in self._events), default=0)
        newest = [event for event in self._events if event.iteration == last]
        change = f" ({pool_change(newest)} at {last})" if last else ""
        coming = every * (self._done // every + 1)
        shown = f"skills shown {m['skills_shown']:.0f}"
        shown += f"   next update {coming}" if coming <= self._iterations else ""
        reward = f"pass {numbers.percent(rewards[-1])}{unguided(m)} {sparkline(rewards)}"
        return f"{reward}   pool {m['pool']:.0f}{change}   {shown}"

    def _sampling(self, record: IterationRecord) -> str:
        rho = next((draw.rho for draw in record.draws if draw.rho is not None), None)
        parts = [] if rho is None else [f"discovery {numbers.percent(rho)}"]
        parts.append(f"coverage {numbers.percent(self._history[-1].get('coverage'))}")
        weakest = weakest_cell(record.state)
        if weakest:
            task_type, capability, passes, fails = weakest
            mean = (1 + passes) / (2 + passes + fails)
            spread = math.sqrt(mean * (1 - mean) / (3 + passes + fails))
            parts.append(f"weakest {task_type} x {capability} {numbers.percent(mean)} ± {numbers.points(spread)}")
        return ", ".join(parts)

    def _judge(self) -> str:
        parts = [self.judge_monitor.judge(self._history[-1])] if self.judge_monitor else []
        parts += [note.strip()] if (note := judge_note(self._history[-1])) else []
        parts += [money] if self.judge_monitor and (money := self.judge_monitor.money(self._done)) else []
        return "   ".join(parts)

    def _update(self) -> str:
        m = self._history[-1]
        lost = f"   groups left out for infrastructure {m['incomplete']:.0f}" if m.get("incomplete") else ""
        lost += f"   tasks set aside {m['set_aside']:.0f}" if m.get("set_aside") else ""
        ahead = self._config.train.max_staleness
        old = f", {m['staleness']:.1f} of at most {ahead} versions old" if ahead else ""
        norm = m.get("grad_norm", math.nan)
        return (
            f"tokens kept {numbers.percent(m['kept_share'])}{old}, gradient {numbers.decimal(norm)}{lost}{no_update(m)}"
        )

    def _screen(self) -> Panel:
        rows = Table.grid(padding=(0, 2))
        rows.add_column(style="bold")
        rows.add_column()
        rows.add_row("time", self._time())
        for name, text in self._rows:
            rows.add_row(name, Text(visible(text)))
        waits = self._waits.under_way()
        for wait in waits:
            rows.add_row("now", _bar(wait))
        if not (self._rows or waits or self._messages):
            rows.add_row("now", Text("starting"))
        if self._alarm:
            rows.add_row(Text("alarm", style="bold red"), Text(visible(self._alarm), style="red"))
        for n, line in enumerate(self._wrong):
            rows.add_row("" if n else "still wrong", Text(visible(line.strip())))
        for event in self._events[-KEPT_EVENTS:]:
            words = event_words(event.kind, event.note)
            told = f"{event.iteration}: {words} {event.rubric_id}{_rates(event)}  {event.note}"
            rows.add_row("", Text(visible(told)[:100]))
        for message in self._messages:
            rows.add_row("", Text(visible(message)))
        title = f"ARISE  {visible(self._folder.name)}  iteration {self._done}/{self._iterations}"
        bar = Table.grid(expand=True)  # outside a grid the bar would overwrite the line below it
        bar.add_row(ProgressBar(total=self._iterations, completed=self._done))
        return Panel(Group(bar, rows), title=title, title_align="left", subtitle=f"arise view {self._folder}")
