"""What a task requires of its sandbox, what a kind of sandbox offers, and what verification takes and returns.

The paths are those of Harbor, so that scripts of a task find everything where they expect it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

TESTS, LOGS, SOLUTION = "/tests", "/logs/verifier", "/solution"
"""Inside a sandbox: the tests during verification, the reward files, the task's own solution."""
REWARD_JSON, REWARD_TEXT, TEST_REPORT = "reward.json", "reward.txt", "ctrf.json"
MAX_REWARD_BYTES, MAX_REPORT_BYTES = 64 * 1024, 1024 * 1024


@dataclass(frozen=True)
class Healthcheck:
    """A command that must succeed before the agent starts — `Healthcheck("curl -f localhost:8000")`; in seconds."""

    command: str
    interval: float = 5.0
    timeout: float = 30.0
    start_period: float = 0.0
    start_interval: float = 5.0
    retries: int = 3


@dataclass(frozen=True)
class SetupCommand:
    """A command to run before the agent starts — `SetupCommand("make data", cwd="/app")`; in seconds."""

    command: str
    timeout: float = 600.0
    cwd: str = ""
    """The working directory of the sandbox if empty."""
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = "root"


COMPOSE_FILE = "docker-compose.yaml"
"""Beside a Dockerfile or instead of it, the description of a task's containers."""


@dataclass(frozen=True)
class Place:
    """What a task requires of its sandbox — `Place(files=Path("task/environment"), workdir="/app")`.

    An empty or zero field requires nothing: the sandbox decides.
    """

    files: Path | None = None
    """The task's own files, copied into the working directory unless a Dockerfile says where they belong."""
    skip: tuple[str, ...] = ()
    """Top-level names of `files` that are not copied."""
    folders: tuple[str, ...] = ()
    """Further folders that `put` fills and commands can read, such as /solution."""
    image: str = ""
    dockerfile: Path | None = None
    """Built with its folder as the context, which then decides which files the image holds."""
    context: Path | None = None
    """The folder that a build sees, where it is another one."""
    build_timeout: float = 600.0
    workdir: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    cpus: float = 0.0
    memory_mb: float = 0.0
    storage_mb: float = 0.0
    gpus: float = 0.0
    gpu_types: tuple[str, ...] = ()
    tpu: str = ""
    """Type and topology of a TPU, such as `v6e 2x4`."""
    network: str = ""
    """`none`, `endpoint` (the policy's endpoint only), `public`, `allow:host,...`, or `deny:host,url,...`."""
    healthcheck: Healthcheck | None = None
    setup: tuple[SetupCommand, ...] = ()
    """Commands to run once before the agent starts."""
    directory: Path | None = None
    """The folder of the task, for sandboxes that read the whole task themselves."""
    mounts: tuple[tuple[str, str], ...] = ()
    """Host paths and their paths inside, read-only, such as an agent's installation. No task sets this."""


BARE = Place()
"""The place of a sandbox without a task."""


@dataclass(frozen=True)
class SandboxCapabilities:
    """What a kind of sandbox offers a task — `SandboxCapabilities("bubblewrap", memory_mb=512)`.

    Amounts are the most that one sandbox gets; None means as much as a task asks for.
    """

    kind: str
    images: bool = False
    """Whether it builds Dockerfiles and runs images."""
    networks: frozenset[str] = frozenset({"none"})
    """Which of `none`, `endpoint`, `allow` and `public` a place may ask for."""
    cpus: float | None = None
    memory_mb: float | None = None
    storage_mb: float | None = None
    gpus: float | None = 0.0
    tpus: bool = False
    workdir: str = ""
    """The only possible working directory; "" means any."""
    env: bool = True
    users: bool = False
    healthcheck: bool = False
    setup: bool = False
    """Whether it runs the setup commands of a place."""
    compose: bool = False
    """Whether it starts the other containers of a compose file."""
    separate_verifier: bool = False
    """Whether tests can run in a separate environment."""
    steps: bool = False
    """Whether tasks of several steps can be run."""


@dataclass(frozen=True)
class VerifierJob:
    """One run of a task's test.sh — `VerifierJob((Path("task/tests"),), timeout=600)`."""

    tests: tuple[Path, ...]
    """Folders with the tests, each copied over the ones before it."""
    timeout: float = 600.0
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    place: Place = BARE
    """The environment of the tests."""
    separate: bool = False
    """Whether the tests see only the artifacts of the attempt."""
    artifacts: tuple[str, ...] = ()
    """Paths of the attempt that are copied to the same path of a separate environment."""


@dataclass(frozen=True)
class RewardFile:
    """A reward file as it is after verification; `handed_to` names a program of the attempt that could write it."""

    name: str
    data: bytes
    writer: str = "test.sh"
    order: int = 0
    """Files with a higher number were written later."""
    handed_to: str = ""


@dataclass(frozen=True)
class VerifierRun:
    """How test.sh ended and what it left — `VerifierRun("2 passed", rewards=(RewardFile("reward.txt", b"1"),))`.

    Everything here can be the doing of the attempt. Infrastructure failures raise SandboxLost instead.
    """

    output: str = ""
    ended: str = "exit"
    """`exit`, `signal`, or the limit that ended test.sh: `timeout`, `output`, `memory` or `processes`."""
    signal: int = 0
    out_of_memory: bool = False
    """Whether it was killed because it ran out of memory."""
    left_running: bool = False
    """Whether processes outlived test.sh that could have written the reward after it."""
    rewards: tuple[RewardFile, ...] = ()
    """Reward files written by test.sh and its own programs only, unless the notes of the pool say otherwise."""
    notes: tuple[str, ...] = ()
    """Attempts of other programs to write the reward."""
    left_out: tuple[str, ...] = ()
    """Files of the attempt that test.sh did not see, each with the reason."""
    tests: bytes = b""
    """The content of ctrf.json, which any program of the attempt may have written."""
    refused: str = ""
    """Why the files of the attempt could not be shown to test.sh, which then did not run."""
