"""The five prompt templates of the paper's appendix as files, and their strict rendering.

`{{name}}` is replaced once: by plain text in the system part, by JSON in the user part, so that data never leaves its
JSON string. Missing values and values without a placeholder are errors. Must never look at a model's reply.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from hashlib import sha256

from arise.llm.prompts.prompt_files import read, schema
from arise.llm.prompts.shapes import Shape
from arise.taxonomy import issue_tags, patterns
from arise.types import Capability

CONTRACT = 3
"""Increase it whenever the meaning of a prompt or of `wire` changes: older cached replies are then not used."""

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_BLOCK = re.compile(r"^\{\{([#^])(\w+)\}\}\n(.*?)^\{\{/\2\}\}\n", re.MULTILINE | re.DOTALL)
_SHARED = (
    "data_is_not_instruction", "diagnostic_items", "evidence_sources", "one_object", "skill_limits", "visible_checks",
)  # fmt: skip


class Template(StrEnum):
    """The paper's five prompts."""

    INITIAL_ANALYSIS = "initial_analysis"
    RUBRIC_EVALUATION = "rubric_evaluation"
    PAIR_GENERATION = "pair_generation"
    SKILL_REFINEMENT = "skill_refinement"
    TASK_ANNOTATION = "task_annotation"
    DUPLICATE_CHECK = "duplicate_check"
    """Not from the paper: decides whether a shortlisted proposal repeats a criterion."""


class PromptError(ValueError):
    """A template and its values do not match."""


@dataclass(frozen=True)
class Prompt:
    """A rendered prompt with the hash of its template, shared texts and data."""

    template: Template
    system: str
    user: str
    template_hash: str
    shape: Shape | None = None
    """The form of the reply, for servers that can enforce it; no part of the cache key, since it is no part of the
    question."""

    @property
    def messages(self) -> tuple[dict[str, str], ...]:
        """Return the messages in the endpoint's format."""
        return {"role": "system", "content": self.system}, {"role": "user", "content": self.user}

    @property
    def distinct(self) -> tuple[str, ...]:
        """Return the part of the cache key besides model and parameters."""
        return self.system, self.user

    @property
    def hash(self) -> str:
        """Hash of the whole rendered text, for the record of a reply."""
        return sha256(f"{self.system}\0{self.user}".encode()).hexdigest()[:16]


def render(
    template: Template,
    user: Mapping[str, object],
    switches: Mapping[str, bool] | None = None,
    shape: Shape | None = None,
) -> Prompt:
    """Render a template; every placeholder needs a value and every value a placeholder.

    The system part has no values: it is the same in every request of a kind, which a provider's prompt cache needs.
    """
    system_part, user_part = (_switch(part, switches or {}) for part in _parts(template))
    text = _fill(system_part, fixed_texts(template), template)
    encoded = {name: to_json(value) for name, value in {**_fixed_data(template), **user}.items()}
    body = _fill(user_part, encoded, template)
    unused = set(user) - _names(user_part)
    if unused:
        raise PromptError(f"{template}: no placeholder for {', '.join(sorted(unused))}")
    json.loads(body)
    return Prompt(template, text, body, template_hash(template), shape)


@cache
def template_hash(template: Template) -> str:
    """Content hash of a template with its shared texts, taxonomies and schemas, recorded with every reply."""
    system_part, user_part = _parts(template)
    content = [str(CONTRACT), system_part, user_part, json.dumps(fixed_texts(template), sort_keys=True)]
    content.append(json.dumps(_fixed_data(template), sort_keys=True))
    return sha256("\0".join(content).encode()).hexdigest()[:16]


def to_json(value: object) -> str:
    """JSON whose data stays inside its strings; NaN is an error, a lone surrogate becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace").decode()


@cache
def fixed_texts(template: Template) -> dict[str, str]:
    """Return the shared texts and taxonomies that a system part includes."""
    names = _names(_parts(template)[0])
    texts = {name: read(f"shared/{name}.md").strip() for name in _SHARED}
    texts["behavior_issue_taxonomy"] = "\n".join(
        f"- `{tag.id}`: {tag.definition}. Usually {tag.usual_capability}. Not for: {tag.not_for}."
        for tag in issue_tags()
    )
    texts["behavior_pattern_catalog"] = "\n".join(
        f"- {p.id} {p.name} (`{p.issue_tag}`, {p.capability}): when {p.when}. Good: {p.good}. Bad: {p.bad}."
        for p in patterns()
    )
    texts["issue_tags_in_brief"] = "\n".join(f"- `{tag.id}`: {tag.brief}" for tag in issue_tags())
    texts["patterns_in_brief"] = "\n".join(f"- {pattern.brief}" for pattern in patterns())
    texts["capability_categories"] = ", ".join(f"`{capability}`" for capability in Capability)
    for name in ("verdict_example", "verdict_example_with_reasons", "diagnostics_example"):
        texts[name] = read(f"schemas/{name}.jsonl").strip()
    return {name: text for name, text in texts.items() if name in names}


@cache
def _fixed_data(template: Template) -> dict[str, object]:
    data = {
        Template.INITIAL_ANALYSIS: {"diagnostics_schema": "diagnostics_shape"},
        Template.RUBRIC_EVALUATION: {"diagnostics_schema": "diagnostics_shape"},
        Template.PAIR_GENERATION: {"output_schema": "paired_items_shape"},
        Template.SKILL_REFINEMENT: {"output_schema": "skill_rewrite", "scoring_spec": "scoring_spec"},
        Template.TASK_ANNOTATION: {"required_output_shape": "annotation_shape"},
        Template.DUPLICATE_CHECK: {},
    }
    return {placeholder: schema(name) for placeholder, name in data[template].items()}


@cache
def _parts(template: Template) -> tuple[str, str]:
    text = read(f"{template}.md")
    opening, system, rest = text.partition("# System\n")
    body, user, user_part = rest.partition("\n# User\n")
    if opening.strip() or not system or not user:
        raise PromptError(f"{template}: expected '# System' followed by '# User'")
    return body.strip() + "\n", user_part.strip() + "\n"


def _switch(text: str, switches: Mapping[str, bool]) -> str:
    """Keep `{{#name}}` blocks if the switch is on and `{{^name}}` blocks if it is off."""

    def keep(match: re.Match[str]) -> str:
        sign, name, body = match.groups()
        if name not in switches:
            raise PromptError(f"the switch {name!r} is not set")
        return str(body) if switches[name] == (sign == "#") else ""

    return _BLOCK.sub(keep, text)


def _fill(text: str, values: Mapping[str, str], template: Template) -> str:
    missing = _names(text) - set(values)
    if missing:
        raise PromptError(f"{template}: no value for {', '.join(sorted(missing))}")
    return _PLACEHOLDER.sub(lambda match: values[match[1]], text)


def _names(text: str) -> set[str]:
    return set(_PLACEHOLDER.findall(text))
