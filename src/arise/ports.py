"""All protocols on one page. Adapters implement them; `compose` chooses.

A configuration can name your own class with these methods by `kind = "import"`.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from arise.types import (
    BARE,
    Capabilities,
    CommandResult,
    Draw,
    Example,
    Group,
    Judgment,
    LossSpec,
    Message,
    OptimSpec,
    Pair,
    Place,
    PolicyRef,
    Pool,
    RefinementRecord,
    Reflection,
    Reply,
    Rewrite,
    Rollout,
    SamplingParams,
    SandboxCapabilities,
    Segment,
    Selection,
    ShownSkill,
    StepStats,
    StreamEvent,
    Tally,
    Task,
    Tokens,
    ToolSpec,
    Trajectory,
    VerifierJob,
    VerifierRun,
)


class Sampler(Protocol):
    """Chooses the tasks of each batch and learns from finished groups.

    - `draw` returns up to `count` different tasks, none of `unavailable`, each with the reason why it was drawn.
    - `observe` learns from judged groups; a group with a missing reward must teach nothing.
    - `keep_only` forgets everything about rubrics that are no longer in the pool.
    - `to_dict` returns the whole state as JSON values, random generator included; `restore` continues exactly there.
    """

    def draw(self, count: int, version: int, unavailable: Collection[str] = ()) -> list[Draw]: ...
    def observe(self, groups: Sequence[Group], pool: Pool, version: int) -> None: ...
    def keep_only(self, pool: Pool) -> None: ...
    def to_dict(self) -> dict[str, object]: ...
    def restore(self, saved: Mapping[str, object]) -> None: ...


class Judge(Protocol):
    """Judges one rollout by the rubrics of the pool; never raises.

    A judgment holds a verdict, or the reason why there is none, for every rubric, and behaviour that no rubric covers;
    with an empty pool, the latter only. `identity` names the model and the rules, and is stored with each judgment.
    """

    @property
    def identity(self) -> str: ...
    async def judge(self, task: Task, rollout: Rollout, pool: Pool) -> Judgment: ...


class Assessor(Protocol):
    """Judges a finished group as a whole, by the rubrics of the pool or by its own criteria."""

    async def assess(self, group: Group, pool: Pool) -> Group: ...


class Guidance(Protocol):
    """Chooses, for each rollout of a group, the pairs whose texts are in its prompt.

    `unguided` counts the recent successes without skills at tasks of the same types.
    """

    def shown(
        self, pool: Pool, iteration: int, task_id: str, group_size: int, unguided: Tally
    ) -> list[tuple[Pair, ...]]: ...


class Reflector(Protocol):
    """Writes new pairs from evidence (Eq. 4) and rewrites a skill from failures under it (Eq. 8).

    - `propose` returns at most `max_items` pairs, none of which repeats a pair in `avoid`. One update may call it
      several times, with other evidence and the next `round_number`.
    - `rewrite` returns a new text for the skill of a pair, or the reason to keep the old one.
    """

    async def propose(
        self, evidence: Selection, avoid: Sequence[Pair], max_items: int, round_number: int
    ) -> Reflection: ...
    async def rewrite(self, pair: Pair, failures: Sequence[RefinementRecord]) -> Rewrite: ...


class Chat(Protocol):
    """Writes conversations as token ids; `extend` only ever appends to the ids of a conversation."""

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> list[int]: ...
    def extend(self, ids_so_far: Sequence[int], text: str, role: str = "tool") -> list[int]: ...
    def count(self, text: str) -> int: ...


class Agent(Protocol):
    """Makes one attempt at a task in a sandbox; its randomness must depend on `key` and `seed` only.

    `system` is the whole system prompt, which contains the texts of the skills in `shown`. To be trained on, the
    trajectory must hold the exact tokens of every conversation in `rows`.
    """

    async def attempt(
        self, task: Task, sandbox: "Sandbox", system: str, shown: tuple[ShownSkill, ...], key: str, seed: int
    ) -> Trajectory: ...


class Engine(Protocol):
    """A policy that samples with exact token records and takes the paper's update.

    - `sample` returns `n` continuations of a prompt under the published weights; many calls may run at once.
    - `train_step` takes one update (Eqs. 18-19); `publish` makes the trained weights those that are sampled.
    - `score` and `train_step` compute log-probs at the temperature of the rollouts, as `sample` recorded them.
    - `save_state` stores all that a resume needs and returns a URI for `load_state`, which returns the policy version.
    - `facts` are stored in the run's record: the digest of the weights and what the arithmetic depends on.
    """

    @property
    def version(self) -> int: ...
    @property
    def chat(self) -> Chat: ...
    def capabilities(self) -> Capabilities: ...
    def facts(self) -> Mapping[str, str]: ...
    def close(self) -> None: ...
    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, n: int = 1) -> list[Segment]: ...
    async def score(self, row: Tokens, temperature: float = 1.0) -> Tokens: ...
    async def train_step(self, examples: Sequence[Example], loss: LossSpec, optim: OptimSpec) -> StepStats: ...
    async def publish(self) -> PolicyRef: ...
    async def save_state(self, path: Path) -> str: ...
    async def load_state(self, uri: str) -> int: ...
    async def export_hf(self, path: Path) -> Path: ...


class FormatError(ValueError):
    """A conversation that a format cannot write: the message says what cannot be shown and what to change."""


class StreamReader(Protocol):
    """Reads one assistant turn while it is generated; all calls come from `end`, together."""

    def feed(self, ids: Sequence[int]) -> list[StreamEvent]: ...
    def end(self) -> list[StreamEvent]: ...


class Format(Protocol):
    """How one model family writes conversations as token ids; text of a message never becomes a control token.

    - `prompt` renders a whole conversation, up to where the assistant speaks next; raises FormatError.
    - `extend` continues `ids`, which end after a sampled assistant turn (without its stop token if a limit cut the
      turn), with a group of tool, user and system messages. The result starts with `ids`: sampled tokens are never
      rendered again. It returns None if it cannot continue here; the caller then renders a new row with `prompt`.
    - `answer` gives the ids of an assistant turn as the model would write it, its stop token included.
    - `read` and `stream` take the generated ids of one turn. Give `prompt`, the ids before them (their last 32 are
      enough), if you have it: some templates open the reasoning inside the prompt, and not in every turn.
    - `count` is the number of tokens that a text takes inside a message.
    - `text` shows ids of a turn as text, without its stop token.
    """

    @property
    def stop_ids(self) -> frozenset[int]: ...
    def prompt(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> list[int]: ...
    def extend(
        self, ids: Sequence[int], messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> list[int] | None: ...
    def answer(self, message: Message, tools: Sequence[ToolSpec] = ()) -> list[int]: ...
    def read(self, ids: Sequence[int], tools: Sequence[ToolSpec] = (), prompt: Sequence[int] = ()) -> Reply: ...
    def stream(self, tools: Sequence[ToolSpec] = (), prompt: Sequence[int] = ()) -> StreamReader: ...
    def count(self, text: str) -> int: ...
    def text(self, ids: Sequence[int]) -> str: ...


class SandboxLost(Exception):  # noqa: N818 - what happened, not which class of error it is
    """The sandbox itself failed: an infrastructure fault, never something that a command did."""


class PolicyLost(Exception):  # noqa: N818 - what happened, not which class of error it is
    """The policy could not be reached: an infrastructure fault, never something that it did."""


class TreeRefused(Exception):  # noqa: N818 - what happened, not which class of error it is
    """Files of an attempt cannot be copied whole: caused by the agent, never a fault; the message says why."""


class Sandbox(Protocol):
    """A confined place with a working directory; commands run one at a time, closing leaves no process behind.

    Every method raises SandboxLost when the sandbox itself fails.
    """

    @property
    def workdir(self) -> str: ...
    async def run(
        self, command: str, timeout: float, env: Mapping[str, str] | None = None, user: str | None = None
    ) -> CommandResult:
        """Run one shell command in the working directory; `env` is added to the environment of the sandbox."""
        ...

    async def put(self, source: Path, target: str) -> None:
        """Copy a file or the content of a folder of the host to the path `target` inside, over what is there.

        Raises TreeRefused when what is there is in the way.
        """
        ...

    async def get(self, source: str, target: Path) -> tuple[str, ...]:
        """Copy a file or the content of a folder inside to the host path `target`; return what was left out.

        It may be the work of an agent: follow no link in it. Raises FileNotFoundError when there is nothing at
        `source`, and TreeRefused when it cannot be copied whole.
        """
        ...

    async def reach(self, url: str) -> str:
        """Return the URL under which commands inside reach an endpoint that the host knows as `url`."""
        ...

    async def end(self) -> None:
        """End every process of the sandbox and return when they are dead; the files stay until `close`."""
        ...

    async def close(self) -> None:
        """End every process and release everything the sandbox holds."""
        ...


class SandboxPool(Protocol):
    """Hands out fresh sandboxes, each as its place requires; raises SandboxLost, an infrastructure fault."""

    @property
    def capabilities(self) -> SandboxCapabilities: ...
    @property
    def notes(self) -> tuple[str, ...]:
        """Limits that this machine does not enforce, for the record of the run."""
        ...

    async def open(self, place: Place = BARE) -> Sandbox: ...
    async def close(self) -> None: ...


class VerifierPool(Protocol):
    """Runs the tests of a task on the files that an attempt left, in sandboxes that the agent never touched."""

    @property
    def notes(self) -> tuple[str, ...]: ...
    async def verify(self, attempt: Sandbox, job: VerifierJob) -> VerifierRun:
        """Copy the files of an ended attempt into a fresh sandbox and run test.sh there.

        Only test.sh and its own programs can write the reward files that the result holds.
        """
        ...

    async def close(self) -> None: ...


class Tracker(Protocol):
    """Receives the numbers of every iteration, in its own thread; one that raises is dropped and the run continues."""

    def log(self, iteration: int, values: Mapping[str, float]) -> None: ...
    def close(self) -> None: ...
