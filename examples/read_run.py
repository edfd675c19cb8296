"""Read a run folder without the command line: curve, held-out result, and the life of every rubric.

Works while the run is still going on: a reader sees the last committed iteration and never blocks the writer.
Run: python examples/read_run.py RUN
"""

import sys
from pathlib import Path

from arise import RunReader


def report(folder: Path) -> None:
    """Print what a run learned."""
    with RunReader.open(folder) as run:
        for iteration in run.iterations():
            metrics = iteration.metrics
            rubrics = f"{metrics['rubric_reward']:.2f}" if "rubric_reward" in metrics else "  --"
            print(f"iteration {iteration.number:3}  pass rate {metrics['pass_rate']:6.1%}  rubric reward {rubrics}")
        for label in run.evaluations():
            attempts = [attempt for attempt in run.attempts(label) if attempt.success is not None]
            passed = sum(bool(attempt.success) for attempt in attempts)
            print(f"held out, {label}: {passed} of {len(attempts)} attempts pass")
        for pair in run.pairs():
            events = [f"{event.kind} after iteration {event.iteration}" for event in run.events(pair.rubric.id)]
            print(f"{pair.rubric.id} {pair.status:7} {pair.rubric.criteria_text}\n     {', '.join(events)}")
        faults = sum(run.faults_by_k().values())
        print(f"rollouts lost to infrastructure faults: {faults}")


if __name__ == "__main__":
    report(Path(sys.argv[1]))
