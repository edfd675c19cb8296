"""Tables of agent behaviour: how attempts end, all-fail groups, effects of skills, and rubric lifecycles."""

from collections.abc import Sequence
from statistics import fmean

from arise.report.comparison.document import Table
from arise.report.comparison.measures import STAGES, RunMeasures, Study
from arise.report.comparison.tables import BASE, label, rate_text
from arise.text.numbers import decimal
from arise.types import StopReason


def table_endings(study: Study) -> Table:
    """Tabulate how attempts end, by the agent or by a limit, and the success rate of each kind."""
    rows = [_endings_row(BASE, next(iter(study.values())), "before")]
    rows += [_endings_row(label(method), runs, "after") for method, runs in study.items()]
    caption = (
        "How held-out attempts end (%): the agent said that it was done, or ran into a limit of turns, tokens or time; "
        "beside each, how many of these succeeded. Attempts of all seeds pooled."
    )
    return Table(caption, ["Method", "Done", "of these succeeded", "Limit", "of these succeeded"], rows)


def _endings_row(name: str, runs: Sequence[RunMeasures], evaluation: str) -> list[str]:
    rows = [row for run in runs for row in run.labelled(evaluation) if row.success is not None]
    done = [bool(row.success) for row in rows if row.stop == StopReason.FINISHED]
    limited = [bool(row.success) for row in rows if row.stop != StopReason.FINISHED]
    sides = [((len(side), len(rows)), (sum(side), len(side))) for side in (done, limited)]
    return [name, *(rate_text(cell) for side in sides for cell in side)]


def table_all_failures(study: Study) -> Table:
    """Tabulate all-fail groups, which have no outcome signal, at the start and by third of the run."""
    rows = []
    for method, runs in study.items():
        starts = [run.all_failures(run.update_every) for run in runs]
        counts = [
            [c for run in runs for c in run.all_failure_by_stage()[stage].values()] for stage in range(len(STAGES))
        ]
        sums = [(sum(failed for failed, _ in cells), sum(seen for _, seen in cells)) for cells in counts]
        rows.append([label(method), *map(rate_text, [_total(starts), *sums])])
    caption = (
        "Training groups whose rollouts all fail (%), before the first pool update and by third of the run, seeds "
        "pooled; samplers draw other tasks."
    )
    return Table(caption, ["Method", "start", *STAGES], rows)


def table_internalisation(study: Study) -> Table | None:
    """Tabulate the effect of a shown skill on its behaviour, and the rate without it, by third of the run."""
    rows = []
    for method, runs in study.items():
        stages = [[run.contrast_by_stage()[stage] for run in runs] for stage in range(len(STAGES))]
        if any(tally.evaluations for stage in stages for pair in stage for tally in pair):
            cells = [" / ".join(rate_text(_total(side)) for side in zip(*stage, strict=True)) for stage in stages]
            rows.append([label(method), *cells])
    caption = (
        "Behaviours while their skill was shown (pass rate, %): rollouts that saw it / rollouts of the same iterations "
        "that did not, by third of the run, seeds pooled. Where every rollout sees it, there are no others."
    )
    return Table(caption, ["Method", *STAGES], rows) if rows else None


def _total(tallies: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(passes for passes, _ in tallies), sum(evaluations for _, evaluations in tallies)


def table_lives(study: Study) -> Table | None:
    """Tabulate how many rubrics were added and retired per run; None if no method has rubrics."""
    rows = []
    for method, runs in study.items():
        lives = [_life(run) for run in runs]
        if any(map(any, lives)):
            means = [decimal(fmean(counts), 1) for counts in zip(*lives, strict=True)]
            rows.append([label(method), *means, rate_text(_total([run.watched for run in runs]))])
    caption = (
        "Rubrics of a run, mean over seeds: born; of these in the words of one that had gone; retired; taken back by "
        "the watch; in the pool at the end. Last, verdicts on retired rubrics that passed (%), where a watch goes on "
        "judging them."
    )
    header = ["Method", "Born", "Again", "Retired", "Taken back", "At the end", "Watched"]
    return Table(caption, header, rows) if rows else None


def _life(run: RunMeasures) -> tuple[int, int, int, int, int]:
    born, retired, reopened = (run.words_of(kind) for kind in ("born", "retire", "reopen"))
    left = len(born) + len(run.words_of("imported")) + len(reopened) - len(retired)
    return len(born), len(born) - len(set(born)), len(retired), len(reopened), left
