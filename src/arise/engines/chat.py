"""Convert chat messages to token ids and extend conversations without re-tokenizing generated ids.

Uses the tokenizer's own chat template. Text of messages can never become a control token.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Message = Mapping[str, str]
"""`{"role": "user", "content": "List the files."}`; roles are system, user, assistant and tool."""


class ChatFormat:
    """The conversation format of one tokenizer; `end_ids` are the tokens that end an assistant turn."""

    def __init__(self, tokenizer: Any) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise ValueError(
                "the tokenizer has no chat template: use an instruction-tuned model, "
                "or put a chat_template.jinja into the model's folder"
            )
        self._tokenizer = tokenizer
        self._between: dict[str, tuple[list[int], list[int]]] = {}
        end = self._control(self._after_an_answer())[:1] or [tokenizer.eos_token_id]
        self._end = end[0]
        self.end_ids = frozenset([*end, *([] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id])])

    def _after_an_answer(self) -> str:
        """Return what the template writes after an answer; some templates require a system message first."""
        reason = ""
        for roles in (("user", "assistant"), ("system", "user", "assistant")):
            messages = [{"role": role, "content": _mark(i)} for i, role in enumerate(roles)]
            failure, text = self._render(messages, answer=False)
            _, found, after = text.partition(_mark(len(roles) - 1))
            if found:
                return after
            reason = reason or failure or "it drops the answer"
        raise ValueError(f"the chat template cannot show a message and its answer ({reason}): set another template")

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Return the ids of a conversation, up to the opening of the next assistant turn."""
        marked = [{**message, "content": _mark(i)} for i, message in enumerate(messages)]
        failure, rest = self._render(marked, answer=True)
        if failure:
            roles = ", ".join(message["role"] for message in messages)
            raise ValueError(f"the chat template cannot show messages of {roles} ({failure}): set another template")
        ids = list[int]()
        for i, message in enumerate(messages):
            control, found, rest = rest.partition(_mark(i))
            if not found:
                raise ValueError(
                    f"the chat template drops message {i} (role {message['role']!r}): leave it out or rename it"
                )
            ids += self._control(control) + self._content(message["content"])
        return ids + self._control(rest)

    def extend(self, ids_so_far: Sequence[int], text: str, role: str = "tool") -> list[int]:
        """Return the ids of the next prompt: the ids so far, one message, and the assistant's opening."""
        before, after = self._turn_change(role)
        if before and ids_so_far and before[0] == ids_so_far[-1]:
            before = before[1:]  # the model ended its turn itself
        return [*ids_so_far, *before, *self._content(text), *after]

    def answer(self, text: str) -> list[int]:
        """Return the ids of a whole answer as the model would write it, including its end of turn."""
        return [*self._content(text), self._end]

    def count(self, text: str) -> int:
        """Return the number of tokens of a text inside a message."""
        return len(self._content(text))

    def _turn_change(self, role: str) -> tuple[list[int], list[int]]:
        """Return the ids between an answer and a message of this role, and those after the message."""
        if role not in self._between:
            roles = ("user", "assistant", role)
            _, text = self._render([{"role": r, "content": _mark(i)} for i, r in enumerate(roles)], answer=True)
            if _mark(1) not in text or _mark(2) not in text:
                # Many templates have no tool role; send tool results as user messages then.
                if role == "user":
                    raise ValueError(
                        "the chat template cannot show a user message after an answer: set another template"
                    )
                self._between[role] = self._turn_change("user")
                return self._between[role]
            before, after = text.split(_mark(1))[1].split(_mark(2))
            self._between[role] = self._control(before), self._control(after)
        return self._between[role]

    def _render(self, messages: Sequence[Message], answer: bool) -> tuple[str, str]:
        """Return (error, text): why the template could not render the messages, and the rendered text; one is empty."""
        from jinja2 import TemplateError

        try:
            text = self._tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=answer)
        except (TemplateError, TypeError) as error:
            return str(error) or type(error).__name__, ""
        return "", str(text)

    def _control(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"] if text else []
        return ids

    def _content(self, text: str) -> list[int]:
        if not text:
            return []
        ids: list[int] = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        return ids


def _mark(number: int) -> str:
    """Return a placeholder for a message while the template is analysed."""
    return f"\ue000{number}\ue001"
