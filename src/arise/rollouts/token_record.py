"""The exact token record of a conversation, as recorded by any agent."""

from dataclasses import dataclass, field

import numpy as np

from arise.types import Segment, Tokens


@dataclass
class TokenRecord:
    """The tokens of one conversation while it grows: `add` what the policy wrote, assign longer `ids` for the rest.

    ```python
    record = TokenRecord(engine.chat.prompt(messages))
    record.add(segment)                                         # from engine.sample(record.ids, ...)
    record.ids = engine.chat.extend(record.ids, observation)    # what the environment answered
    row = record.row()                                          # for Trajectory.rows
    ```
    """

    ids: list[int]
    spans: list[tuple[int, Segment]] = field(default_factory=list)

    def add(self, segment: Segment) -> None:
        """Append what the policy wrote, with its log-probabilities and versions."""
        self.spans.append((len(self.ids), segment))
        self.ids.extend(segment.ids)

    def row(self) -> Tokens:
        """Return all tokens with their mask; what the policy did not write has log-probability 0 and version -1."""
        generated_U = np.zeros(len(self.ids), dtype=np.bool_)
        logprob_U = np.zeros(len(self.ids))
        version_U = np.full(len(self.ids), -1, dtype=np.int64)
        for start, segment in self.spans:
            place = slice(start, start + len(segment.ids))
            generated_U[place], logprob_U[place], version_U[place] = True, segment.logprobs, segment.versions
        return Tokens(np.array(self.ids, dtype=np.int64), generated_U, logprob_U, version_U)
