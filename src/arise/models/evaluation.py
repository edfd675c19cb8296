"""One evaluation request as values: its prompt with ids and canaries of its own, and what a reply to it settles."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from arise.models.canaries import EVERY_TASK, Canary, canaries
from arise.models.prompt import Prompt, Template, render, to_json
from arise.models.trace import Trace
from arise.models.wire import DiagnosticReply, VerdictReply
from arise.types import DiagnosticItem, Pool, Rubric, Verdict


@dataclass(frozen=True)
class Question:
    """A request: rubrics under aliases that only this request knows, so that a trajectory cannot name them."""

    prompt: Prompt
    aliases: dict[str, str]
    pool_aliases: dict[str, str]
    canaries: tuple[Canary, ...]


def question(
    trace: Trace, turns: int, batch: Sequence[Rubric], pool: Pool, *, diagnostics: bool, canary: bool, salt: str
) -> Question:
    """Asks about a batch; with diagnostics the request also sees the rest of the pool."""
    nonce = digest(to_json([salt, pool.version, [rubric.id for rubric in batch], diagnostics, trace.sample]))
    alias = {rubric.id: f"{rubric.id}-{nonce[:6]}" for rubric in pool.rubrics}
    entries = {alias[rubric.id]: _entry(alias[rubric.id], rubric) for rubric in batch}
    names = (f"r{pool.born + 1:03d}-{nonce[:6]}", f"r{pool.born + 2:03d}-{nonce[:6]}")
    birds = canaries(nonce, names, turns) if canary else ()
    for bird in birds:
        entries[bird.id] = _fields(bird.id, 1, EVERY_TASK, bird.rule_text)
    order = sorted(entries, key=lambda name: digest(nonce + name))
    values: dict[str, object] = {
        "call": nonce,
        "pool_version": pool.version,
        "rubrics": [entries[name] for name in order],
        "sample_result": trace.sample,
    }
    counts = {"rubric_count": str(len(order))}
    if diagnostics:
        rest = [rubric for rubric in pool.rubrics if alias[rubric.id] not in entries]
        values["rest_of_pool"] = [_entry(alias[rubric.id], rubric) for rubric in rest]
        counts["rubric_count_plus_one"] = str(len(order) + 1)
    prompt = render(Template.RUBRIC_EVALUATION, values, counts, {"diagnostics": diagnostics})
    aliases = {alias[rubric.id]: rubric.id for rubric in batch}
    return Question(prompt, aliases, {name: rubric_id for rubric_id, name in alias.items()}, birds)


def caught(birds: Sequence[Canary], parsed: VerdictReply) -> bool:
    """Whether a canary was answered, and answered wrongly; an unanswered one is a matter of format."""
    return any(parsed.verdicts.get(bird.id, bird.answer) is not bird.answer for bird in birds)


def settled(asked: Question, parsed: VerdictReply) -> tuple[dict[str, Verdict], dict[str, str], DiagnosticReply]:
    """Verdicts and absences by real rubric id, and the diagnostics; without its canaries a reply settles nothing."""
    for bird in asked.canaries:
        if bird.id not in parsed.verdicts:
            reason = f"control question: {parsed.absent[bird.id]}"
            return {}, dict.fromkeys(asked.aliases.values(), reason), DiagnosticReply(None, reason)
    verdicts = {real: parsed.verdicts[name] for name, real in asked.aliases.items() if name in parsed.verdicts}
    absent = {real: parsed.absent[name] for name, real in asked.aliases.items() if name in parsed.absent}
    return verdicts, absent, _with_real_ids(parsed.diagnostics, asked.pool_aliases)


def digest(text: str) -> str:
    """A name for a text that nobody can choose."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _entry(alias: str, rubric: Rubric) -> dict[str, object]:
    return _fields(alias, rubric.version, rubric.applicability_condition, rubric.rule_text)


def _fields(alias: str, version: int, condition: str, rule: str) -> dict[str, object]:
    return {
        "rubric_id": alias,
        "rubric_version": version,
        "source_criteria_id": f"criteria-{alias}",
        "scope": "global",
        "applicability_condition": condition,
        "rule_text": rule,
        "rubric_weight": 1.0,
    }


def _with_real_ids(found: DiagnosticReply, names: dict[str, str]) -> DiagnosticReply:
    if found.diagnostic is None:
        return found

    def real(items: tuple[DiagnosticItem, ...]) -> tuple[DiagnosticItem, ...]:
        return tuple(
            replace(item, related_rubric_ids=tuple(names[i] for i in item.related_rubric_ids if i in names))
            for item in items
        )

    diagnostic = found.diagnostic
    issues, strategies = real(diagnostic.uncovered_issues), real(diagnostic.positive_uncovered_strategies)
    mapped = replace(diagnostic, uncovered_issues=issues, positive_uncovered_strategies=strategies)
    return replace(found, diagnostic=mapped)
