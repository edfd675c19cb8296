"""The simulation against cases that can be worked out by hand, and against what must hold for any fleet."""

from dataclasses import replace

import pytest

from arise.plan.fleet import Clock, Schedule, SimulatedServer, simulate
from arise.plan.speed import Speeds
from arise.plan.workload import Assumptions, Workload

SPEEDS = Speeds(step=0.01, each=0.001, most=64, update=100.0, publish=5.0)
WORK = Workload(
    rollouts=16,
    group_size=8,
    turns=1,
    generated=1000,
    observed=0,
    prompt=100,
    longest=4096,
    stretch=10.0,
    judge_calls=1,
    judge_input=1000,
    judge_output=100,
)
STILL = Assumptions(
    spread=0.0, tool_seconds=0.0, start_seconds=0.0, verify_seconds=30.0, judge_seconds=20.0, reflect_seconds=0.0
)


def finished_at(jobs: list[tuple[float, float]], speeds: Speeds = SPEEDS) -> list[float]:
    """When jobs of (arrival, tokens) end on one server."""
    clock, ends = Clock(), [0.0] * len(jobs)
    server = SimulatedServer(clock, speeds)

    def submit(n: int) -> None:
        server.submit(jobs[n][1], lambda: ends.__setitem__(n, clock.now))

    for n, (arrival, _) in enumerate(jobs):
        clock.after(arrival, lambda n=n: submit(n))  # type: ignore[misc]
    clock.run(lambda: False)
    return ends


def test_one_conversation_decodes_at_the_speed_of_one() -> None:
    assert finished_at([(0.0, 1000)]) == [pytest.approx(11.0)]


def test_two_conversations_slow_each_other_while_both_run() -> None:
    # Together for 500 tokens at 12 ms, then the second alone for 500 at 11 ms.
    assert finished_at([(0.0, 500), (0.0, 1000)]) == [pytest.approx(6.0), pytest.approx(11.5)]


def test_a_late_arrival_shares_what_is_left() -> None:
    # Alone until 5.5 s (500 tokens); then both at 12 ms per token; 500 tokens later the first ends.
    assert finished_at([(0.0, 1000), (5.5, 1000)]) == [pytest.approx(11.5), pytest.approx(17.0)]


def test_a_full_server_lets_others_wait() -> None:
    ends = finished_at([(0.0, 100), (0.0, 100)], replace(SPEEDS, most=1))
    assert ends == [pytest.approx(1.1), pytest.approx(2.2)]


def test_a_synchronous_iteration_is_the_sum_of_its_parts() -> None:
    assumed = replace(STILL, reflect_seconds=50.0)
    found = simulate(WORK, SPEEDS, assumed, Schedule(servers=1, update_every=10, iterations=4))
    assert found.parts["judge"] == pytest.approx(20.0)
    assert found.parts["update"] == pytest.approx(100.0)
    assert found.parts["pool update"] == pytest.approx(5.0)
    assert found.parts["publish"] == pytest.approx(5.0)
    assert found.parts["next batch"] == 0.0
    assert found.seconds == pytest.approx(sum(found.parts.values()))


def test_without_a_judge_there_is_no_judging_and_no_pool_update() -> None:
    found = simulate(replace(WORK, judge_calls=0), SPEEDS, replace(STILL, reflect_seconds=50.0), Schedule(1))
    assert found.parts["judge"] == found.parts["pool update"] == 0.0


def test_few_judge_calls_at_a_time_take_turns() -> None:
    slow = simulate(WORK, SPEEDS, replace(STILL, judge_concurrency=2.0), Schedule(1))
    assert slow.parts["judge"] >= 60.0  # the last group alone has 8 calls of 20 s, two at a time: 80 s less overlap


def test_staleness_hides_the_shorter_of_rollouts_and_update() -> None:
    synchronous = simulate(WORK, SPEEDS, STILL, Schedule(1, max_staleness=0))
    ahead = simulate(WORK, SPEEDS, STILL, Schedule(1, max_staleness=1))
    rollouts = synchronous.parts["rollouts"]
    assert ahead.seconds == pytest.approx(synchronous.seconds - min(rollouts, 120.0), rel=0.2)


def test_more_servers_never_slow_an_iteration_and_work_is_conserved() -> None:
    results = [simulate(WORK, SPEEDS, STILL, Schedule(servers)).seconds for servers in (1, 2, 4)]
    assert results == sorted(results, reverse=True)


def test_the_same_seed_gives_the_same_forecast() -> None:
    assumed = replace(STILL, spread=0.6, tool_seconds=3.0)
    assert simulate(WORK, SPEEDS, assumed, Schedule(2), seed=3) == simulate(WORK, SPEEDS, assumed, Schedule(2), seed=3)


def test_a_longer_tail_lengthens_the_iteration() -> None:
    work = replace(WORK, turns=20, rollouts=64)
    even = simulate(work, SPEEDS, STILL, Schedule(2)).seconds
    assert simulate(work, SPEEDS, replace(STILL, spread=0.8), Schedule(2)).seconds > even
