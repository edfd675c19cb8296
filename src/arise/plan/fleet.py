"""A discrete-event simulation of the fleet: servers, tools, judge and trainer, as `train.py` drives them.

A server shares its speed among its conversations, so its state is one number: how many tokens each has generated.
Must never look at a real run.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

import numpy as np

from arise.plan.speed import Speeds
from arise.plan.workload import Assumptions, Workload

PARTS = ("rollouts", "judge", "update", "pool update", "next batch", "publish")


@dataclass(frozen=True)
class Schedule:
    """What decides the order of events besides speeds: servers, staleness, iterations between pool updates."""

    servers: int
    max_staleness: int = 0
    update_every: int = 10
    iterations: int = 6


@dataclass(frozen=True)
class Simulated:
    """Means over the iterations after the first: seconds by part, their sum, and how busy servers and trainer are."""

    seconds: float
    parts: dict[str, float]
    servers_busy: float
    trainer_busy: float
    mean_conversations: float
    """Conversations that a server decodes at a time while it decodes any."""


class Clock:
    """The event queue."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def after(self, delay: float, event: Callable[[], None]) -> None:
        heappush(self._events, (self.now + delay, next(self._order), event))

    def run(self, until: Callable[[], bool]) -> None:
        while self._events and not until():
            self.now, _, event = heappop(self._events)
            event()


class SimulatedServer:
    """A sampling server: up to `most` conversations share it, others wait in order of arrival."""

    def __init__(self, clock: Clock, speeds: Speeds) -> None:
        self._clock, self._speeds = clock, speeds
        self._jobs: list[tuple[float, int, Callable[[], None]]] = []
        self._waiting: deque[tuple[float, Callable[[], None]]] = deque()
        self._generated = self._since = self.busy = self.decoded = self.steps = 0.0
        self._epoch, self._order = 0, count()

    def submit(self, tokens: float, finished: Callable[[], None]) -> None:
        self._advance()
        self._waiting.append((tokens, finished))
        self._admit()

    def _seconds_per_token(self) -> float:
        return self._speeds.step + self._speeds.each * len(self._jobs)

    def _advance(self) -> None:
        elapsed, self._since = self._clock.now - self._since, self._clock.now
        if self._jobs:
            tokens = elapsed / self._seconds_per_token()
            self._generated += tokens
            self.steps += tokens
            self.decoded += tokens * len(self._jobs)
            self.busy += elapsed

    def _admit(self) -> None:
        while self._waiting and len(self._jobs) < self._speeds.most:
            tokens, finished = self._waiting.popleft()
            heappush(self._jobs, (self._generated + tokens, next(self._order), finished))
        self._epoch += 1
        if self._jobs:
            epoch, left = self._epoch, max(0.0, self._jobs[0][0] - self._generated)
            self._clock.after(left * self._seconds_per_token(), lambda: self._complete(epoch))

    def _complete(self, epoch: int) -> None:
        if epoch != self._epoch:
            return  # the mix of conversations has changed since this was scheduled
        self._advance()
        target, _, finished = heappop(self._jobs)
        self._generated = max(self._generated, target)
        self._admit()
        finished()


class JudgeCalls:
    """Judge calls, a limited number at a time."""

    def __init__(self, clock: Clock, seconds: float, concurrency: int) -> None:
        self._clock, self._seconds, self._free = clock, seconds, max(1, concurrency)
        self._waiting: deque[Callable[[], None]] = deque()

    def submit(self, finished: Callable[[], None]) -> None:
        self._waiting.append(finished)
        self._start()

    def _start(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            finished = self._waiting.popleft()
            self._clock.after(self._seconds, lambda finished=finished: self._end(finished))  # type: ignore[misc]

    def _end(self, finished: Callable[[], None]) -> None:
        self._free += 1
        finished()
        self._start()


@dataclass
class PendingBatch:
    """Progress of one batch: what is still to be rolled out and to be judged, and when each was done."""

    rolling: int
    judging: int
    rolled_at: float = -1.0
    judged_at: float = -1.0


@dataclass
class SimulatedFleet:
    """The whole run: batches start as staleness allows, the trainer takes them in order."""

    work: Workload
    speeds: Speeds
    assumed: Assumptions
    schedule: Schedule
    seed: int = 0
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self._servers = [SimulatedServer(self.clock, self.speeds) for _ in range(self.schedule.servers)]
        self._judge = JudgeCalls(self.clock, self.assumed.judge_seconds, int(self.assumed.judge_concurrency))
        self._batches: list[PendingBatch] = []
        self._done = 0
        self._published: list[float] = [0.0]
        self._trained_at = self._evolved_at = 0.0
        self._training = self._waits = False
        self._rows: list[dict[str, float]] = []
        self._trainer_busy = 0.0

    def simulate(self) -> Simulated:
        self._start_batches()
        self.clock.run(lambda: self._done >= self.schedule.iterations)
        rows = self._rows[1:] or self._rows
        parts = {part: float(np.mean([row[part] for row in rows])) for part in PARTS}
        total = self.clock.now * len(self._servers)
        busy = sum(server.busy for server in self._servers)
        shared = sum(server.decoded for server in self._servers)
        steps = sum(server.steps for server in self._servers)
        return Simulated(
            sum(parts.values()), parts, busy / total, self._trainer_busy / self.clock.now, shared / max(1.0, steps)
        )

    def _start_batches(self) -> None:
        while len(self._batches) <= min(self._done + self.schedule.max_staleness, self.schedule.iterations - 1):
            work = self.work
            batch = PendingBatch(work.rollouts, work.rollouts * work.judge_calls)
            self._batches.append(batch)
            spread = self.assumed.spread
            lengths = self._rng.lognormal(-spread * spread / 2, spread, work.rollouts).clip(max=work.stretch)
            pending = [work.group_size] * (work.rollouts // work.group_size)
            for j, length in enumerate(lengths):
                turns = max(1, round(work.turns * length))
                server = self._servers[j % len(self._servers)]
                self.clock.after(self.assumed.start_seconds, self._turn(batch, pending, j, server, turns))

    def _turn(
        self, batch: PendingBatch, pending: list[int], j: int, server: SimulatedServer, turns: int
    ) -> Callable[[], None]:
        """Return the event that submits the first of the remaining turns."""
        tokens = float(self._rng.exponential(self.work.generated / self.work.turns))

        def finished() -> None:
            if turns > 1:
                tool = float(self._rng.exponential(self.assumed.tool_seconds))
                self.clock.after(tool, self._turn(batch, pending, j, server, turns - 1))
            else:
                self.clock.after(self.assumed.verify_seconds, lambda: self._rolled_out(batch, pending, j))

        return lambda: server.submit(tokens, finished)

    def _rolled_out(self, batch: PendingBatch, pending: list[int], j: int) -> None:
        batch.rolling -= 1
        if not batch.rolling:
            batch.rolled_at = self.clock.now
        group = j // self.work.group_size
        pending[group] -= 1
        if not pending[group]:  # a group is judged when its last rollout is there
            for _ in range(self.work.group_size * self.work.judge_calls):
                self._judge.submit(lambda: self._judged(batch))
        self._proceed()

    def _judged(self, batch: PendingBatch) -> None:
        batch.judging -= 1
        self._proceed()

    def _proceed(self) -> None:
        """Start the next update if its batch is complete, or publish if that waited for the next batch."""
        if self._waits:
            self._publish()
        if self._training or self._done >= len(self._batches):
            return
        batch = self._batches[self._done]
        if batch.rolling or batch.judging:
            return
        batch.judged_at = self.clock.now
        self._training = True
        self._trainer_busy += self.speeds.update
        self.clock.after(self.speeds.update, self._trained)

    def _trained(self) -> None:
        self._trained_at = self.clock.now
        # The mean share of an iteration, so that few simulated iterations give the cost of many.
        share = self.assumed.reflect_seconds / self.schedule.update_every if self.work.judge_calls else 0.0
        self.clock.after(share, self._evolved)

    def _evolved(self) -> None:
        self._evolved_at, self._waits = self.clock.now, True
        self._publish()

    def _publish(self) -> None:
        following = self._done + 1
        if following < len(self._batches) and self._batches[following].rolling:
            return  # the policy must not change under the next batch
        self._waits = False
        ready = self.clock.now
        self.clock.after(self.speeds.publish, lambda: self._new_version(ready))

    def _new_version(self, ready: float) -> None:
        batch, began = self._batches[self._done], self._published[-1]
        rolled = max(began, batch.rolled_at)
        self._rows.append(
            {
                "rollouts": rolled - began,
                "judge": max(0.0, batch.judged_at - rolled),
                "update": self._trained_at - max(rolled, batch.judged_at),
                "pool update": self._evolved_at - self._trained_at,
                "next batch": ready - self._evolved_at,
                "publish": self.clock.now - ready,
            }
        )
        self._published.append(self.clock.now)
        self._done += 1
        self._training = False
        self._start_batches()
        self._proceed()


def simulate(work: Workload, speeds: Speeds, assumed: Assumptions, schedule: Schedule, seed: int = 0) -> Simulated:
    """Simulate `schedule.iterations` iterations."""
    return SimulatedFleet(work, speeds, assumed, schedule, seed).simulate()
