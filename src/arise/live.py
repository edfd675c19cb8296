"""The live terminal: one screen that is redrawn after every iteration, for people who watch."""

import time
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from arise.display import Display
from arise.store import IterationRecord
from arise.types import PoolEvent

BARS = "▁▂▃▄▅▆▇█"
KEPT_MESSAGES = 6


def sparkline(values: Sequence[float], width: int = 24) -> str:
    """The last values as bars between 0 and 1."""
    return "".join(BARS[min(len(BARS) - 1, int(value * len(BARS)))] for value in values[-width:])


class LiveDisplay(Display):
    """The same numbers as the plain lines, on one screen; use it as a context manager."""

    def __init__(self, console: Console, iterations: int, name: str) -> None:
        super().__init__(self._remember, iterations)
        self._console, self._name = console, name
        self._messages: list[str] = []
        self._history: list[Mapping[str, float]] = []
        self._events: list[PoolEvent] = []
        self._done, self._spent, self._judge, self._money, self._alarm = 0, 0.0, "", "", ""
        self._began = time.monotonic()
        self._live = Live(self._screen(), console=console, auto_refresh=False)

    def __enter__(self) -> "LiveDisplay":
        self._live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.__exit__(None, None, None)

    def _show(self, record: IterationRecord, spent: float) -> None:
        """Take the iteration in and draw the screen anew."""
        self._history.append(record.metrics)
        self._done, self._spent = record.k + 1, spent
        if self.trust:
            self._judge, self._money = self.trust.judge(record.metrics), self.trust.money(self._done)
        if record.update:
            self._events += record.update.evolution.events
        self._live.update(self._screen(), refresh=True)

    def _warn(self, alarm: str) -> None:
        self._alarm = alarm
        self._live.update(self._screen(), refresh=True)

    def _remember(self, message: str) -> None:
        self._messages = [*self._messages, message][-KEPT_MESSAGES:]
        if self._history or message.startswith("warm start"):
            self._live.update(self._screen(), refresh=True)

    def _screen(self) -> Panel:
        done, m = self._done, self._history[-1] if self._history else None
        rows = Table.grid(padding=(0, 2))
        rows.add_column(style="bold")
        rows.add_column()
        if m:
            elapsed = time.monotonic() - self._began
            left = elapsed / len(self._history) * (self._iterations - done)
            passes = [h["pass_rate"] for h in self._history]
            rubrics = [h["rubric_reward"] for h in self._history]
            minutes = f"{elapsed / 60:.1f} min elapsed, about {left / 60:.1f} min left"
            rows.add_row("time", f"{minutes}, {self._spent:.1f} s for the last iteration")
            rows.add_row("tasks", f"pass {100 * m['pass_rate']:5.1f} %  {sparkline(passes)}")
            rows.add_row(
                "groups", f"{m['mixed']:.0f} mixed, {m['all_fail']:.0f} all-fail, {m['all_pass']:.0f} all-pass"
            )
            rows.add_row("rubrics", f"reward {m['rubric_reward']:.2f}  {sparkline(rubrics)}   pool {m['pool']:.0f}")
            rows.add_row("skills", f"{m['skills_shown']:.0f} shown")
            rows.add_row("sampling", f"coverage {m['coverage']:.2f}")
            if self._judge:
                rows.add_row("judge", self._judge)
            if self._money:
                rows.add_row("cost", self._money)
            rows.add_row("update", f"gradient {m['grad_norm']:.2f}, tokens kept {100 * m['kept_share']:.1f} %")
        if self._alarm:
            rows.add_row(Text("alarm", style="bold red"), Text(self._alarm, style="red"))
        for event in self._events[-4:]:
            rate = f" at {100 * event.passes / event.evaluations:.0f} %" if event.evaluations else ""
            rows.add_row("", Text(f"{event.iteration}: {event.kind} {event.rubric_id}{rate}  {event.note}"[:100]))
        for message in self._messages:
            rows.add_row("", Text(message))
        title = f"ARISE  {self._name}  iteration {done}/{self._iterations}"
        screen = Table.grid(expand=True)  # stacked as a Group, the bar would swallow the first row
        screen.add_row(ProgressBar(total=self._iterations, completed=done))
        screen.add_row(rows)
        return Panel(screen, title=title, title_align="left")
