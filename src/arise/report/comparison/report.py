"""Write the report of a comparison from its run folders: Markdown and one self-contained HTML file."""

import csv
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

from arise.config import Config
from arise.config.file import differences, load_config
from arise.report.comparison.behaviour import table_all_failures, table_endings, table_internalisation, table_lives
from arise.report.comparison.claims import OURS, REFERENCE, Claim, claims, outcomes, reaching
from arise.report.comparison.course import table_course, table_unfinished
from arise.report.comparison.document import (
    Block,
    Heading,
    Paragraph,
    Picture,
    Table,
    counted,
    to_html,
    to_latex,
    to_markdown,
)
from arise.report.comparison.fairness import Check, checks
from arise.report.comparison.measures import Study, finished_only, read_study
from arise.report.comparison.plan import MATCHED, read_plan
from arise.report.comparison.statistics import RESAMPLES, compare
from arise.report.comparison.tables import (
    interval_text,
    label,
    p_text,
    paper_tables,
    table_final,
    table_unseen_types,
)
from arise.text.numbers import decimal


class DrawFigures(Protocol):
    """Draw the figures that a study has data for into a folder."""

    def __call__(self, study: Study, folder: Path, formats: Sequence[str] = ...) -> Sequence[Picture]: ...


STATISTICS = f"""How the numbers were made. Intervals over seeds are Student's t (n - 1 degrees of \
freedom) on one value a seed. Differences between methods are paired: the same seed, task and attempt number on \
both sides, attempts that infrastructure ended on either side left out. The exact test flips the sign of each \
seed's (or each task's) difference in all possible ways and counts how often the sum is as far from 0; with n \
seeds its p cannot be below 2 / 2^n. The interval over seeds and tasks draws both anew {RESAMPLES:,} times \
(percentiles). A claim about a difference holds, or does not hold, only when its 95 % interval over seeds lies wholly \
on one side. The test by task takes these training runs as given and says nothing about others. Seeds differ in \
sampling, draws and batches; the tasks are the same for all, and so is the start except where adapters are drawn \
anew, so the intervals speak for these tasks and this start. Nothing is corrected for the number of comparisons."""


@dataclass(frozen=True)
class Written:
    """The written report as text and as data."""

    text: str
    summary: dict[str, Any]


def write_report(folder: Path, draw: DrawFigures | None = None) -> Written:
    """Measure every finished run and write the report, its tables, raw attempts, results.json and figures."""
    page = read_plan(folder)
    everything = read_study([folder])
    study = finished_only(everything)
    planned = len(page["methods"]) * len(page["seeds"])
    finished = sum(len(runs) for runs in study.values())
    if not study:
        return Written(f"no run of {folder} is finished yet; 0 of {planned}", {"finished": 0, "planned": planned})
    pictures = list(draw(study, folder / "figures")) if draw else []
    found, promises = claims(study), checks(study)
    seeds = {run.seed for runs in study.values() for run in runs}
    size = f"{counted(len(study), 'method')}, {counted(len(seeds), 'seed')}"
    title = f"{folder.resolve().name}: {size}, {_base_names(page)}"
    blocks: list[Block] = [
        Heading(title, 1),
        Paragraph(_scope(study, finished, planned)),
        *_answer(found),
        *_final(study),
        *_speed(study),
        *_course(study, everything),
        *_behaviour(study),
        *_figures(pictures),
        Heading("Tables of the paper"),
        *paper_tables(study),
        *_fairness(promises),
        *_how(page, study),
    ]
    (folder / "report.md").write_text(to_markdown(blocks, folder), encoding="utf-8")
    (folder / "report.html").write_text(to_html(title, blocks), encoding="utf-8")
    write_tables(study, folder)
    write_attempts(everything, folder / "attempts.csv.gz")
    summary = _summary(everything, found, promises, planned)
    (folder / "results.json").write_text(json.dumps(summary, indent=2) + "\n")
    return Written(_in_words(folder, found, promises, finished, planned), summary)


def write_tables(study: Study, folder: Path) -> list[Path]:
    """Write the paper's tables to tables.md and tables.tex."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = paper_tables(study)
    written = [folder / "tables.md", folder / "tables.tex"]
    written[0].write_text(to_markdown(tables, folder), encoding="utf-8")
    written[1].write_text("\n".join(to_latex(table) for table in tables), encoding="utf-8")
    return written


def write_attempts(study: Study, path: Path) -> None:
    """Write every held-out attempt of the curves to one file, so that a report can be recomputed without its runs.

    Runs that are not finished are in it as far as they go.
    """
    page = io.StringIO()
    rows = csv.writer(page, lineterminator="\n")
    rows.writerow(["method", "seed", "iteration", "task", "attempt", "domain", "success", "stop"])
    for method, runs in study.items():
        for run in runs:
            for k, evaluation in run.points().items():
                for a in run.labelled(evaluation):
                    won = "" if a.success is None else int(a.success)
                    rows.writerow([method, run.seed, k, a.task_id, a.attempt, a.domain, won, a.stop])
    path.write_bytes(gzip.compress(page.getvalue().encode(), mtime=0))


def _base_names(page: Mapping[str, Any]) -> str:
    return " with ".join(Path(path).stem for path in page.get("bases", [page["base"]]))


def _scope(study: Study, finished: int, planned: int) -> str:
    run = next(iter(study.values()))[0]
    train, tasks, model = (run.config[section] for section in ("train", "tasks", "model"))
    kind = "the embedded world" if tasks["kind"] == "world" else "tasks of its own"
    size = f"{train['iterations']} iterations of {train['tasks_per_iteration']} tasks x {train['group_size']} rollouts"
    left = "" if finished == planned else f" **{planned - finished} of {planned} runs are not finished and left out.**"
    share = study[OURS][0].config["guidance"].get("share", 1.0) if OURS in study else 1.0
    guided = (
        "" if share == 1.0 else f" ARISE here shows skills to a share of {share:g} of each group; the paper, to all."
    )
    return (
        f"A small-scale study on {kind} with a {model['kind']} model, {size} a run. It says what these methods do "
        f"here; it does not reproduce the paper's numbers, which come from a 27-billion-parameter model.{guided}{left}"
    )


def _answer(found: Sequence[Claim]) -> list[Block]:
    if not found:
        return []
    rows = [[claim.text, f"**{claim.verdict}**", claim.numbers] for claim in found]
    return [
        Heading("The paper's claims, here"),
        Table("Each by its 95 % interval.", ["Claim", "Here", "Numbers"], rows),
    ]


def _final(study: Study) -> list[Block]:
    blocks: list[Block] = [Heading("Final held-out pass rate"), table_final(study)]
    rows = []
    for method in study:
        found = compare(outcomes(study, OURS), outcomes(study, method)) if method != OURS else None
        if found:
            both = found.by_seed_and_task
            rows.append(
                [
                    f"ARISE − {label(method)}",
                    interval_text(found.by_seed, signed=True),
                    interval_text(both, signed=True),
                    f"{p_text(found.p_by_seed)} (least possible {p_text(found.best_p_by_seed)})",
                    p_text(found.p_by_task),
                    str(found.pairs),
                ]
            )
    if rows:
        header = ["Difference", "Points, over seeds", "Over seeds and tasks", "Exact p by seed", "by task", "Pairs"]
        blocks.append(Table("Paired differences of the final held-out pass rate.", header, rows))
    unseen = table_unseen_types(study)
    return [*blocks, *([unseen] if unseen else []), Paragraph(STATISTICS)]


def _speed(study: Study) -> list[Block]:
    """Report the iterations needed to reach outcome-only's final pass rate."""
    rows = []
    target_of = {run.seed: run.score("after").rate for run in study.get(REFERENCE, [])}
    for method, runs in study.items():
        found = reaching(study, method)
        if found:
            shown = [f"{k:.0f}" if k is not None else "never" for k in (found.first, found.low, found.high)]
            interval = f"{shown[1]} to {shown[2]}" if found.seeds > 1 else "one seed: no interval"
            target = fmean(target_of[run.seed] for run in runs if run.seed in target_of)
            rows.append([label(method), shown[0], interval, decimal(target, 1), str(found.seeds)])
    if not rows:
        return []
    evaluation = study[REFERENCE][0].config["evaluation"]
    caption = (
        "First evaluation point at which the mean held-out curve stands at or above outcome-only's final pass rate, "
        f"over the seeds that both have; curves are evaluated every {evaluation['every']} iterations with "
        f"{counted(evaluation['attempts_on_the_way'], 'attempt')} a task, their ends with {evaluation['attempts']}; "
        "intervals draw seeds anew."
    )
    header = ["Method", "First", "95 %", "Target (%)", "Seeds"]
    return [Heading("Iterations to outcome-only's final pass rate"), Table(caption, header, rows)]


def _course(study: Study, everything: Study) -> list[Block]:
    unfinished = table_unfinished(everything)
    return [Heading("Over training"), table_course(study), *([unfinished] if unfinished else [])]


def _behaviour(study: Study) -> list[Block]:
    tables = [table_endings(study), table_all_failures(study), table_internalisation(study), table_lives(study)]
    return [Heading("Behaviour"), *(table for table in tables if table)]


def _figures(pictures: Sequence[Picture]) -> list[Block]:
    return [Heading("Figures"), *pictures] if pictures else []


def _fairness(promises: Sequence[Check]) -> list[Block]:
    rows = [[check.promise, "kept" if check.kept else "**broken**", check.found] for check in promises]
    return [Heading("Was it fair?"), Table("Read off the run folders.", ["Promise", "Kept", "Found"], rows)]


def _how(page: dict[str, Any], study: Study) -> list[Block]:
    machine = "\n".join(f"{key}: {value}" for key, value in page.get("machine", {}).items())
    reference = Config()
    rows = []
    for method, runs in study.items():
        changed = differences(load_config(runs[0].folder / "config.toml"), reference)
        own = {name: values for name, values in changed.items() if name not in (*MATCHED, "storage", "sandbox")}
        shown = "; ".join(f"{section}: {json.dumps(values)}" for section, values in own.items())
        rows.append([label(method), f"`{shown}`" if shown else "nothing"])
    hours = sum(sum(run.iteration_seconds) for runs in study.values() for run in runs) / 3600
    return [
        Heading("How to run it again"),
        Paragraph(page.get("command", ""), code=True),
        Paragraph(
            f"Seeds {', '.join(map(str, page['seeds']))}; {counted(page['jobs'], 'run')} at a time with "
            f"{counted(page['threads'], 'torch thread')} each, so times are those of a shared machine; "
            f"{decimal(hours, 1)} hours of training in all. "
            "Beside this report, `arise compare` keeps every run's whole configuration in `configs/` and its record in "
            "`runs/`."
        ),
        Table(
            "What each method changes of the paper's values; budget, optimiser, tasks and model are shared.",
            ["Method", "Configuration"],
            rows,
        ),
        Paragraph(machine, code=True),
    ]


def _summary(everything: Study, found: Sequence[Claim], promises: Sequence[Check], planned: int) -> dict[str, Any]:
    study = finished_only(everything)
    stopped = {method: [run for run in runs if not run.finished and run.curve()] for method, runs in everything.items()}
    return {
        "finished": sum(map(len, study.values())),
        "planned": planned,
        "claims": [asdict(claim) for claim in found],
        "fair": [asdict(check) for check in promises],
        "final": {method: {run.seed: run.score("after").rate for run in runs} for method, runs in study.items()},
        "curves": {method: {run.seed: run.curve() for run in runs} for method, runs in study.items()},
        "all_fail_at_start": {
            m: {run.seed: run.all_failures(run.update_every) for run in runs} for m, runs in study.items()
        },
        "unfinished": {method: {run.seed: run.curve() for run in runs} for method, runs in stopped.items() if runs},
    }


def _in_words(folder: Path, found: Sequence[Claim], promises: Sequence[Check], finished: int, planned: int) -> str:
    lines = [f"{finished} of {planned} runs finished"]
    lines += [f"  {claim.verdict:13s}  {claim.text}: {claim.numbers}" for claim in found]
    lines += [f"  BROKEN PROMISE  {check.promise}: {check.found}" for check in promises if not check.kept]
    return "\n".join([*lines, f"report: {folder / 'report.html'} and {folder / 'report.md'}"])
