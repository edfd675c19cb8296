"""The first screen of `arise analyze`, made from its JSON document."""

from collections.abc import Mapping
from typing import Any

from arise.analyze.gaps import Kind
from arise.text import numbers

SHOWN = 5
"""Maximum number of behaviours per class on the screen; the reports list all of them."""
TITLES = {
    Kind.ASSOCIATED: "Gaps: associated with failure",
    Kind.SUSPECTED: "Suspected: more frequent in failures, not beyond chance",
    Kind.NOT_ASSOCIATED: "Present, but not associated with failure",
    Kind.NO_CONTRAST: "Present; no contrast, because outcomes are unknown or all alike",
    Kind.ANECDOTE: "Anecdotes: seen in fewer than three tasks",
}


def percent(rate: Mapping[str, Any]) -> str:
    """Write a rate with its interval: `42.0 % (35.4 to 48.9) of 200`."""
    if rate["rate"] is None:
        return "of none"
    low, high = rate["interval"]
    return f"{numbers.percent(rate['rate'])} ({numbers.span(low, high)}) of {rate['total']:,}"


def coverage_lines(facts: Mapping[str, Any]) -> list[str]:
    """Return the lines on coverage, the denominator of all rates below."""
    coverage = facts["coverage"]
    skipped = sum(entry["count"] for entry in coverage["skipped"]) + coverage["duplicates"]
    judge = coverage["judge"]
    judged = (
        f"{judge['judged']:,} by {judge['identity']}" if judge else f"{coverage['analysed']:,} by offline detectors"
    )
    lines = [
        f"coverage   found {coverage['found']:,} · parsed {coverage['parsed']:,} · outcome known "
        f"{coverage['outcome_known']:,} · judged {judged} · skipped {skipped:,}"
    ]
    if coverage["formats"]:
        forms = ", ".join(f"{name} {count:,}" for name, count in coverage["formats"].items())
        lines.append(f"formats    {forms}")
    triage = ", ".join(f"{name} {count:,}" for name, count in coverage["triage"].items() if count)
    lines.append(f"outcomes   {triage or 'none'}")
    if rows := coverage.get("outcome_rows"):
        used = coverage["outcome_rows_used"]
        lines.append(f"           {used:,} of them from the {rows:,} rows of {facts['outcomes']}")
    elif facts.get("outcomes"):
        lines.append(f"           {facts['outcomes']} has no row with a task and an outcome; name them with --map")
    reasons = [f"{e['count']:,} x {e['reason']} (e.g. {tail(e['example'])})" for e in coverage["skipped"]]
    reasons += [f"{coverage['duplicates']:,} x the same attempt again"] if coverage["duplicates"] else []
    lines += [f"skipped    {reason}" for reason in reasons[:6]]
    others = ", ".join(f"{count:,} {suffix}" for suffix, count in coverage["unrecognised_files"].items())
    lines += [f"ignored    files in no known format: {others}"] if others else []
    if sum(coverage["unrecognised_files"].values()) > coverage["parsed"] > 0:
        lines += [f"           e.g. {example}" for example in coverage["unrecognised_fields"].values()]
    if coverage["without_turns"]:
        lines.append(f"           {coverage['without_turns']:,} attempts have an outcome and no readable trajectory")
    if judge:
        lines += judge_lines(judge)
    return lines


def judge_lines(judge: Mapping[str, Any]) -> list[str]:
    """Return the lines on the judge: requests, cost and remaining work."""
    left = ", ".join(f"{count:,} {reason}" for reason, count in judge["unjudged"].items()) or "none"
    cap = f" of ${judge['cap']:.2f}" if judge["cap"] else ""
    lines = [
        f"judge      {judge['confirmed']:,} findings confirmed, {judge['refuted']:,} refuted, "
        f"{judge['dropped_quotes']:,} dropped for a quote that is not there; unjudged: {left}",
        f"cost       ${judge['usd']:.4f}{cap} (estimate {judge['estimate']})",
    ]
    return [*lines, f"agreement  {judge['agreement']}"] if judge["agreement"] else lines


def pass_line(facts: Mapping[str, Any]) -> str:
    """Write the pass rate of valid verdicts next to that of all recorded rewards."""
    if facts["pass_rate"]["rate"] is None:
        where = "--map outcome=FIELD names the field that holds it, --outcomes FILE a table"
        return f"pass rate  unknown: no attempt has a verdict; {where}"
    line = f"pass rate  {percent(facts['pass_rate'])} valid verdicts; on file {percent(facts['raw_pass_rate'])}"
    partial = facts["coverage"]["partial_rewards"]
    return f"{line}\n           {partial:,} rewards between 0 and 1 count as failed" if partial else line


def screen(facts: Mapping[str, Any], folder: str = "") -> str:
    """Return the summary screen of an analysis."""
    lines = [*coverage_lines(facts), pass_line(facts)]
    if not facts["coverage"]["parsed"]:
        lines += ["", "Nothing was read. If your files hold chat messages under other names, map them:",
                  "  arise analyze PATH --map messages=FIELD,outcome=FIELD,task=FIELD"]  # fmt: skip
        lines += [f"fields     {example}" for example in facts["coverage"]["unrecognised_fields"].values()]
        return "\n".join(lines)
    number = 0
    for kind, title in TITLES.items():
        gaps = [gap for gap in facts["gaps"] if gap["kind"] == kind.value]
        if not gaps:
            continue
        lines += ["", title]
        full = kind in (Kind.ASSOCIATED, Kind.SUSPECTED, Kind.NO_CONTRAST)
        for gap in gaps[: SHOWN if full else 2 * SHOWN]:
            number += 1
            lines += _gap(gap, number, kind) if full else [_short(gap, number)]
        if len(gaps) > SHOWN and full:
            lines.append(f"    and {len(gaps) - SHOWN} more in the report")
    if not facts["coverage"]["analysed"]:
        lines += ["", "No attempt has a readable trajectory, so no behaviour was looked for: only outcomes are known."]
    elif not facts["gaps"] and facts["coverage"]["judge"] and facts["coverage"]["judge"]["unjudged"]:
        lines += ["", *_unconfirmed(facts["coverage"]["judge"])]
    elif not facts["gaps"]:
        lines += ["", "No behaviour of the catalogue was missed in any attempt that gave an opportunity for it."]
    return "\n".join([*lines, *(["", f"report     {folder}"] if folder else [])])


def _unconfirmed(judge: Mapping[str, Any]) -> list[str]:
    """Return why nothing was confirmed: the judge saw nothing, or none of its verdicts could be used."""
    clean = "The unjudged attempts are not known to be clean."
    if judge["judged"]:
        return [f"No behaviour was confirmed. {clean}"]
    return [
        f"No attempt was judged: no reply of {judge['identity']} could be used. {clean}",
        f"Measure this judge: arise judge check --model {judge['identity']}, with its --base-url and --api-key-env",
    ]


def _gap(gap: Mapping[str, Any], number: int, kind: Kind) -> list[str]:
    gain = f" · fixing it could bring up to {gap['gain_points']:+.1f} points" if gap["gain_points"] >= 0.05 else ""
    lines = [f"{number:>3} {gap['habit']}", f"    {gap['name']} · {gap['capability']} · {counted(gap['tasks'])}{gain}"]
    if kind is Kind.NO_CONTRAST:
        lines.append(f"    in {percent(gap['overall'])} attempts that gave the opportunity")
    else:
        lines.append(f"    failures {percent(gap['in_failures'])} · passes {percent(gap['in_passes'])} · {tested(gap)}")
    for quote in gap["quotes"]:
        lines += [f'      "{cut(quote["quote"], 100)}"', f"        {cut(quote['why'], 100)}"]
        lines.append(f"        turn {quote['turn']} of {tail(quote['source'])}")
    return lines


def _short(gap: Mapping[str, Any], number: int) -> str:
    known = gap["in_failures"]["total"] + gap["in_passes"]["total"]
    rates = f"failures {percent(gap['in_failures'])}, passes {percent(gap['in_passes'])}"
    return f"{number:>3} {gap['habit']}: {rates if known else percent(gap['overall'])}, {counted(gap['tasks'])}"


def counted(tasks: int) -> str:
    """Write a number of tasks."""
    return f"{tasks:,} task{'' if tasks == 1 else 's'}"


def cut(text: str, longest: int) -> str:
    """Shorten a text at its end."""
    return text if len(text) <= longest else text[: longest - 3] + "..."


def tail(source: str, longest: int = 100) -> str:
    """Shorten a source at its beginning: the end of a path tells one file from another."""
    return source if len(source) <= longest else "..." + source[3 - longest :]


def tested(gap: Mapping[str, Any]) -> str:
    """Write how the difference was tested, with its adjusted p-value."""
    within = {"task": "within tasks", "group": "within groups", "none": "between tasks"}[gap["strata"]]
    return f"{within}, q {gap['q']:.2g}" if gap["q"] is not None else f"{within}, no test possible"
