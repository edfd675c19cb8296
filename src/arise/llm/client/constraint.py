"""Ask a server to constrain a reply to a shape, given as a JSON schema or as a grammar.

`json_schema` is OpenAI's `response_format`; vLLM, SGLang, Ollama, llama.cpp and most gateways have it too. `grammar` is
the `grammar` of llama.cpp and the `structured_outputs.grammar` of vLLM, both in GBNF; a server ignores the other's
field.
"""

import json
from collections.abc import Mapping
from typing import Any

from arise.llm.prompts.shapes import Shape

_MOST_ITEMS = 8
_LENGTHS = ("minLength", "maxLength", "minItems", "maxItems", "uniqueItems")
_RULES = r"""
char ::= [^"\\\x7F\x00-\x1F] | "\\" ["\\/bfnrt]
whole ::= "0" | [1-9] [0-9]{0,8}
"""


def constraint(shape: Shape | None, mode: str) -> dict[str, Any]:
    """Return the fields of a request body that ask for a shape; empty for a mode that asks for none."""
    if shape is None:
        return {}
    if mode == "json_schema":
        wanted = {"name": shape.name, "strict": True, "schema": _portable(shape.schema)}
        return {"response_format": {"type": "json_schema", "json_schema": wanted}}
    if mode == "grammar":
        return grammar_fields(grammar(shape))
    return {}


def grammar_fields(text: str) -> dict[str, Any]:
    """Return the fields that pass a grammar to llama.cpp or vLLM."""
    return {"grammar": text, "structured_outputs": {"grammar": text}}


def grammar(shape: Shape) -> str:
    """Return the GBNF of a shape: its lines in order, without a space that JSON does not need."""
    lines = r' "\n" '.join(_expression(line) for line in shape.lines)
    return f"root ::= {lines}{_RULES}"


def literal(text: str) -> str:
    """Return a text as a literal of the grammar."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _expression(schema: Mapping[str, Any]) -> str:
    """Return the grammar expression of a schema; raise for a construct that no shape uses."""
    if "const" in schema:
        return literal(json.dumps(schema["const"]))
    if "enum" in schema:
        return "(" + " | ".join(literal(json.dumps(value)) for value in schema["enum"]) + ")"
    if "anyOf" in schema:
        return "(" + " | ".join(_expression(option) for option in schema["anyOf"]) + ")"
    kind = schema["type"]
    if kind == "object":
        fields = [f"{literal(json.dumps(name) + ':')} {_expression(s)}" for name, s in schema["properties"].items()]
        return literal("{") + " " + ' "," '.join(fields) + " " + literal("}")
    if kind == "array":
        return _array(schema)
    if kind == "string":
        return r'"\"" char+ "\""' if schema.get("minLength") else r'"\"" char* "\""'
    return {"boolean": '("true" | "false")', "null": '"null"', "integer": "whole"}[kind]


def _array(schema: Mapping[str, Any]) -> str:
    item = f"({_expression(schema['items'])})"
    least, most = schema.get("minItems", 0), schema.get("maxItems", _MOST_ITEMS)
    if most == 0:
        return '"[]"'
    rest = f'{item} ("," {item}){{{max(least - 1, 0)},{most - 1}}}' if most > 1 else item
    return f'"[" {rest} "]"' if least else f'"[" ({rest})? "]"'


def _portable(schema: Any) -> Any:
    """Return a schema that strict servers accept: without `const` and length limits, which the parser checks."""
    if isinstance(schema, list):
        return [_portable(value) for value in schema]
    if not isinstance(schema, Mapping):
        return schema
    if "const" in schema:
        schema = {"enum": [schema["const"]]}
    found = {name: _portable(value) for name, value in schema.items() if name not in _LENGTHS}
    if "enum" in found and "type" not in found:
        found["type"] = "boolean" if isinstance(found["enum"][0], bool) else "string"
    return found
