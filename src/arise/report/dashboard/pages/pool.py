"""Pool: the life of every behaviour on one time axis, the weakest first; then rubrics added and retired."""

from collections import Counter
from collections.abc import Sequence

from arise.method.pass_rate import pass_rate
from arise.report.dashboard.charts import Figure, Link, Table
from arise.report.dashboard.charts.axes import Axes
from arise.report.dashboard.charts.figure import Cell
from arise.report.dashboard.charts.lanes import BIRTHS, Lane, Stretch, legend_sign, scale_bar, swimlanes
from arise.report.dashboard.charts.palette import BLUE, CAPABILITY, GREEN, RED
from arise.report.dashboard.charts.svg import drawing, element, polyline
from arise.report.dashboard.pages.page import Asked, Fact, Page, share
from arise.run.facts.behaviours import Behaviour, behaviours, weakness
from arise.run.facts.verdicts import counts_by_rubric
from arise.run.facts.windows import Window, pair_windows
from arise.run.numbering import iteration_of
from arise.run.pool_rows import EVENTS, Event, PairLife, ProposalRow
from arise.text.numbers import FEW, percent
from arise.types import Capability, PairStatus, Tally

LANES_ON_PAGE = 80
COLUMNS = (
    "rubric",
    "behaviour",
    "capability",
    "status",
    "born after",
    "retired after",
    "unguided now",
    "unguided verdicts",
    "first window",
    "last window",
    "last window, unguided",
    "verdicts",
    "skill revision",
)
USUAL = ("born", "activate", "refine", "hide", "retire", "reopen")
REJECTED = 12
JOINS = (*BIRTHS, "reopen")
STUCK = "stuck"
STATUSES = ("", *(status.value for status in PairStatus), STUCK)


def build(asked: Asked, capability: str = "", status: str = "", page: int = 1) -> Page:
    """Build the page, optionally for one capability or one status."""
    run = asked.run
    committed, pairs, events = run.committed(), run.pairs(), run.events()
    counts = counts_by_rubric(run.verdict_counts())
    known = sorted(behaviours(run), key=lambda found: (not found.unguided.evaluations, weakness(found)))
    chosen = [b for b in known if capability in ("", b.rubric.capability.value) and _has(b.pair, status)]
    pages = max(1, -(-len(chosen) // LANES_ON_PAGE))
    page = min(page, pages)
    visible = chosen[(page - 1) * LANES_ON_PAGE : page * LANES_ON_PAGE]
    windows = {
        pair.rubric.id: pair_windows(pair, counts[pair.rubric.id], asked.update_every, committed)
        for behaviour in visible
        for pair in behaviour.pairs
    }
    figures = [_lanes(visible, windows, committed, asked), _timeline(events, committed)]
    content = {
        "capabilities": [(c.value, CAPABILITY[c]) for c in Capability],
        "capability": capability,
        "status": status,
        "statuses": STATUSES,
        "signs": [(legend_sign(kind), words) for kind, words in EVENTS.items() if kind in USUAL],
        "scale": scale_bar(),
        "page_number": page,
        "pages": pages,
        "rejected": _not_taken(run.proposals())[-REJECTED:],
    }
    return Page("pool.html", "Pool", "pool", _facts(asked, pairs, events), figures, content)


def _has(pair: PairLife, status: str) -> bool:
    """Return whether a pair passes the status filter."""
    return status in ("", pair.status) or (status == STUCK and pair.standing.stuck)


def _not_taken(proposals: Sequence[ProposalRow]) -> list[ProposalRow]:
    """Return rejected proposals, each once per update, without those accepted in another round of it."""
    known = {(proposal.k, proposal.text) for proposal in proposals if proposal.accepted}
    found = {(p.k, p.text): p for p in proposals if (p.k, p.text) not in known}
    return list(found.values())


def _facts(asked: Asked, pairs: Sequence[PairLife], events: Sequence[Event]) -> list[Fact]:
    status, kinds = Counter(pair.status for pair in pairs), Counter(event.kind for event in events)
    stuck = sum(pair.standing.stuck for pair in pairs)
    returned = f"{kinds['reopen']} came back" if kinds["reopen"] else ""
    iterations = asked.run.iterations()
    coverage = iterations[-1].metrics.get("coverage") if iterations else None
    return [
        Fact(str(status[PairStatus.HIDDEN] + status[PairStatus.SHOWN]), "in the pool"),
        Fact(str(len(pairs)), "added"),
        Fact(str(status[PairStatus.RETIRED]), "retired", returned),
        Fact(str(status[PairStatus.SHOWN]), "skills shown now", f"{stuck} stuck" if stuck else ""),
        Fact(str(sum(pair.rewritten for pair in pairs)), "skills rewritten"),
        Fact(percent(coverage), "coverage C"),
    ]


def _timeline(events: Sequence[Event], committed: int) -> Figure:
    born, retired = (Counter(e.iteration for e in events if e.kind in kinds) for kinds in (JOINS, ("retire",)))
    rows, size = [], 0
    for number in sorted(born.keys() | retired.keys()):
        size += born[number] - retired[number]
        rows.append((number, born[number], retired[number], size))
    axes = Axes(1140.0, 190.0, 0.0, float(max(committed, 1)), 0.0, max([size for *_, size in rows], default=1) * 1.15)
    parts = axes.frame()
    half = max(1.5, min(7.0, 220 / max(1, len(rows))))
    for number, added, gone, _ in rows:
        for count, left, colour, word in ((added, -half, GREEN, "added"), (gone, 0.0, RED, "retired")):
            if count:
                top = axes.y(count)
                said = element("title", f"{count} {word} after iteration {number}")
                box = {"x": axes.x(number) + left, "y": top, "width": half, "height": axes.y(0.0) - top}
                parts.append(element("rect", said, fill=colour, **box))
    points, before = [(axes.x(0.0), axes.y(0.0))], 0
    for number, _, _, now in rows:
        points += [(axes.x(number), axes.y(before)), (axes.x(number), axes.y(now))]
        before = now
    points.append((axes.x(committed), axes.y(before)))
    parts.append(polyline(points, stroke=BLUE, class_="line"))
    return Figure(
        "timeline",
        "Rubrics in the pool",
        drawing(1140.0, 190.0, "rubrics in the pool, added and retired", *parts),
        Table(("after iteration", "added", "retired", "in the pool"), rows),
        "",
        (("in the pool", BLUE), ("added", GREEN), ("retired", RED)),
        wide=True,
    )


def _lanes(found: Sequence[Behaviour], windows: dict[str, list[Window]], committed: int, asked: Asked) -> Figure:
    rows = [_row(pair, behaviour, windows[pair.rubric.id], asked) for behaviour in found for pair in behaviour.pairs]
    return Figure(
        "lifecycle",
        "Life of every behaviour, the weakest first",
        swimlanes("lives of behaviours, one lane each", [_lane(b, windows, asked) for b in found], committed),
        Table(COLUMNS, rows),
        f"Unguided: without its skill, on held-out tasks where these were judged, else at the end of training. "
        f"Rates of fewer than {FEW} verdicts come last, their windows are pale. Identical criteria share a lane.",
        wide=True,
    )


def _lane(behaviour: Behaviour, windows: dict[str, list[Window]], asked: Asked) -> Lane:
    tally = behaviour.unguided
    spans = [_stretch(window) for pair in behaviour.pairs for window in windows[pair.rubric.id]]
    events = [(event.iteration, event.kind) for pair in behaviour.pairs for event in pair.events]
    return Lane(
        label(behaviour.rubric.criteria_text),
        tuple((pair.rubric.id, asked.links.rubric(pair.rubric.id)) for pair in reversed(behaviour.pairs)),
        CAPABILITY[behaviour.rubric.capability],
        *_rate_and_counts(tally),
        _words(behaviour),
        tuple(spans),
        tuple(events),
    )


def _rate_and_counts(tally: Tally) -> tuple[str, str]:
    if 0 < tally.evaluations < FEW:
        return f"{tally.passes} of {tally.evaluations}", "too few for a rate"
    return percent(pass_rate(tally)), f"{tally.passes} of {tally.evaluations}" if tally.evaluations else "not judged"


def _words(behaviour: Behaviour) -> str:
    """Return the status in words: `skill shown, stuck`, `retired`."""
    status = str(behaviour.standing)
    return status if behaviour.standing.status is PairStatus.RETIRED else f"skill {status}"


def _row(pair: PairLife, behaviour: Behaviour, windows: Sequence[Window], asked: Asked) -> tuple[Cell, ...]:
    rubric, judged = pair.rubric, [window for window in windows if window.evaluations]
    return (
        Link(rubric.id, asked.links.rubric(rubric.id)),
        rubric.criteria_text,
        rubric.capability.value,
        str(pair.standing),
        pair.born,
        pair.retired,
        share(pass_rate(behaviour.unguided)),
        behaviour.unguided.evaluations,
        share(judged[0].rate) if judged else None,
        share(judged[-1].rate) if judged else None,
        share(judged[-1].unguided_rate) if judged else None,
        sum(window.evaluations for window in judged),
        pair.skills[-1].revision if pair.skills else 0,
    )


def _stretch(window: Window) -> Stretch:
    first = iteration_of(window.first)
    return Stretch(first, window.end, window.passes, window.evaluations, window.shown)


def label(criteria_text: str) -> str:
    """Shorten a criterion for a lane: drop the words that all criteria begin with."""
    text = criteria_text.removeprefix("The agent ").rstrip(".")
    return text[:1].lower() + text[1:]
