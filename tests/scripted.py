"""A policy that says what it is told to, with a word-level chat format: the test double of an engine."""

from collections.abc import Mapping, Sequence

from arise.types import Capabilities, SamplingParams, Segment


class WordChat:
    """One id a word; roles and ends are words too."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def ids(self, text: str) -> list[int]:
        for word in text.split():
            if word not in self.words:
                self.words.append(word)
        return [self.words.index(word) for word in text.split()]

    def text(self, ids: Sequence[int]) -> str:
        return " ".join(self.words[i] for i in ids)

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        return self.ids(" ".join(f"<{m['role']}> {m['content']} <end>" for m in messages) + " <assistant>")

    def extend(self, ids_so_far: Sequence[int], text: str, role: str = "tool") -> list[int]:
        return [*ids_so_far, *self.ids(f"<{role}> {text} <end> <assistant>")]

    def count(self, text: str) -> int:
        return len(self.ids(text))


class ScriptedEngine:
    """Answers the turns of every conversation from one list; records the prompts it was given."""

    def __init__(self, chat: WordChat, answers: Sequence[str], finish: str = "stop") -> None:
        self.chat, self.answers, self.finish = chat, answers, finish
        self.version = 3
        self.prompts: list[str] = []
        self._turns: dict[str, int] = {}

    def capabilities(self) -> Capabilities:
        return Capabilities(True, False, False, context_length=60)

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, n: int = 1) -> list[Segment]:
        self.prompts.append(self.chat.text(prompt_ids))
        turn = self._turns.get(params.conversation, 0)
        self._turns[params.conversation] = turn + 1
        answer = self.answers[min(turn, len(self.answers) - 1)]
        ids = tuple(self.chat.ids(f"{answer} <end>"))
        return [Segment(ids, tuple(-0.5 for _ in ids), tuple(self.version for _ in ids), answer, self.finish)] * n
