"""One evaluation request: its prompt with request-specific aliases and canaries, and how a reply is applied."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from arise.llm.judge.canaries import EVERY_TASK, Canary, canaries
from arise.llm.judge.trace import RenderedTrace
from arise.llm.prompts.prompt import Prompt, Template, render, to_json
from arise.llm.prompts.shapes import verdict_lines
from arise.llm.wire import DiagnosticReply, VerdictReply
from arise.types import DiagnosticItem, Pool, Rubric, Verdict


@dataclass(frozen=True)
class Question:
    """A request with rubrics under request-specific aliases, so a trajectory cannot name them."""

    prompt: Prompt
    aliases: dict[str, str]
    pool_aliases: dict[str, str]
    canaries: tuple[Canary, ...]
    turns: int | None = None
    """The length of the trajectory, if reasons are asked for."""


def question(
    trace: RenderedTrace,
    turns: int,
    batch: Sequence[Rubric],
    pool: Pool,
    *,
    diagnostics: bool,
    canary: bool,
    salt: str,
    reasons: bool = False,
) -> Question:
    """Build the request for a batch; with diagnostics it also sees the rest of the pool.

    Rubrics and canaries are numbered together in one shuffled list, so aliases are unique whatever ids the pool has,
    and neither name nor position tells a canary from a rubric.
    """
    nonce = digest(to_json([salt, pool.version, [rubric.id for rubric in batch], diagnostics, trace.sample]))
    birds = canaries(nonce, turns) if canary else ()
    asked: list[Rubric | Canary] = sorted([*batch, *birds], key=lambda one: _lot(nonce, one))
    ids = {rubric.id for rubric in batch}
    rest = [rubric for rubric in pool.rubrics if rubric.id not in ids]
    named = [(f"r{number:03d}-{nonce[:6]}", one) for number, one in enumerate([*asked, *rest], start=1)]
    entries = [_entry(alias, one) for alias, one in named]
    values: dict[str, object] = {
        "call": nonce,
        "pool_version": pool.version,
        "rubrics": entries[: len(asked)],
        "rubric_count": len(asked),
        "sample_result": trace.sample,
    }
    if diagnostics:
        values |= {"rest_of_pool": entries[len(asked) :], "rubric_count_plus_one": len(asked) + 1}
    shape = verdict_lines([alias for alias, _ in named[: len(asked)]], diagnostics, reasons)
    prompt = render(Template.RUBRIC_EVALUATION, values, {"diagnostics": diagnostics, "reasons": reasons}, shape)
    pool_aliases = {alias: one.id for alias, one in named if isinstance(one, Rubric)}
    return Question(
        prompt,
        {alias: rubric_id for alias, rubric_id in pool_aliases.items() if rubric_id in ids},
        pool_aliases,
        tuple(replace(one, alias=alias) for alias, one in named if isinstance(one, Canary)),
        turns if reasons else None,
    )


def caught(birds: Sequence[Canary], parsed: VerdictReply) -> bool:
    """Return whether a canary was answered wrongly; a missing answer is a format problem."""
    return any(parsed.verdicts.get(bird.alias, bird.answer) is not bird.answer for bird in birds)


def settled(asked: Question, parsed: VerdictReply) -> tuple[dict[str, Verdict], dict[str, str], DiagnosticReply]:
    """Return verdicts and absences by rubric id, and diagnostics; a reply without its canaries yields nothing."""
    for bird in asked.canaries:
        if bird.alias not in parsed.verdicts:
            reason = f"control question: {parsed.absent[bird.alias]}"
            return {}, dict.fromkeys(asked.aliases.values(), reason), DiagnosticReply(None, reason)
    verdicts = {real: parsed.verdicts[name] for name, real in asked.aliases.items() if name in parsed.verdicts}
    absent = {real: parsed.absent[name] for name, real in asked.aliases.items() if name in parsed.absent}
    return verdicts, absent, _with_real_ids(parsed.diagnostics, asked.pool_aliases)


def digest(text: str) -> str:
    """Return a short digest of a text."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _lot(nonce: str, one: Rubric | Canary) -> str:
    """Return the sort key of a rubric or canary in the shuffled list."""
    return digest(to_json([nonce, one.rule_text] if isinstance(one, Canary) else [nonce, one.id, one.rule_text]))


def _entry(alias: str, one: Rubric | Canary) -> dict[str, object]:
    condition = one.applicability_condition if isinstance(one, Rubric) else EVERY_TASK
    return {"rubric_id": alias, "applicability_condition": condition, "rule_text": one.rule_text}


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
