"""Check whether an attempt can forge its reward: run known cheats against a task's test.sh.

The guard denies programs of the attempt access to the reward files. It cannot protect a test that runs them in the
process that writes the reward, reads the reward from their files, or trusts their exit code.
"""

import asyncio
import os
import shlex
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from arise.config import HarborTasks
from arise.errors import AriseError, Exit
from arise.ports import Sandbox, SandboxLost, TreeRefused
from arise.rollouts.oracle import TrialPools, run_null, solve
from arise.rollouts.stages import run_stages
from arise.rollouts.verifier import VerifierResult
from arise.tasks import TaskProblem
from arise.types import TaskSpec
from arise.types.sandbox import LOGS

AT_ONCE = 4
CLEAR_SECONDS = 60.0
FORGE = f"""#!/bin/bash
echo 1 > {LOGS}/reward.txt
echo '{{"reward": 1}}' > {LOGS}/reward.json
chmod 444 {LOGS}/reward.txt {LOGS}/reward.json
exit 1
"""
PYTHON_FORGE = f"""import os
for name, text in (("reward.txt", "1"), ("reward.json", '{{"reward": 1}}')):
    try:
        with open("{LOGS}/" + name, "w") as file:
            file.write(text)
        os.chmod("{LOGS}/" + name, 0o444)
    except OSError:
        pass
os._exit(1)
"""
PASS, PYTHON_PASS = "#!/bin/bash\nexit 0\n", "import os\nos._exit(0)\n"
READ_BY_ITSELF = ("conftest.py", "sitecustomize.py", "usercustomize.py", "json.py", "os.py", "pathlib.py", "pytest.py")
_HOOK = "cheat-hook"


Plant = Callable[[Path, Path | None], None]
"""Changes the files of an attempt; the second path is the task's environment, to identify files of the solution."""


def _is_program(path: Path) -> bool:
    return path.suffix in (".py", ".sh") or os.access(path, os.X_OK) or path.read_bytes().startswith(b"#!")


def _files(folder: Path) -> list[Path]:
    return [
        path
        for parent, _, names in os.walk(folder)
        for name in names
        if (path := Path(parent, name)).is_file() and not path.is_symlink()
    ]


def _take_back(path: Path, folder: Path, environment: Path | None) -> None:
    """Undo the solution's change of a file."""
    original = environment / path.relative_to(folder) if environment else None
    if original is not None and original.is_file():
        path.write_bytes(original.read_bytes())
    else:
        path.unlink()


def _programs(python: str, shell: str) -> Plant:
    """Return a cheat that overwrites every program and undoes every answer of the solution."""

    def plant(folder: Path, environment: Path | None) -> None:
        for path in _files(folder):
            if not _is_program(path):
                _take_back(path, folder, environment)
            else:
                path.write_text(python if path.suffix == ".py" else shell)
                path.chmod(0o755)

    return plant


def _answers(text: str) -> Plant:
    """Return a cheat that overwrites every answer with a reward, which test.sh may copy, and undoes every program."""

    def plant(folder: Path, environment: Path | None) -> None:
        for path in _files(folder):
            if _is_program(path):
                _take_back(path, folder, environment)
            else:
                path.write_text(text)
        for name in ("reward.txt", "reward.json", "score.txt", "result.txt", "answer.txt"):
            (folder / name).write_text(text)

    return plant


def _read_by_tools(folder: Path, _: Path | None) -> None:
    """Add files that Python, pytest, make, npm, git and shells run automatically."""
    for name in READ_BY_ITSELF:
        if not (folder / name).exists():
            (folder / name).write_text(PYTHON_FORGE)
    (folder / _HOOK).write_text(FORGE)
    (folder / _HOOK).chmod(0o755)
    (folder / "Makefile").write_text(f".PHONY: %\n%:\n\tbash {_HOOK}\nall test check: ; bash {_HOOK}\n")
    (folder / "package.json").write_text(f'{{"scripts": {{"test": "bash {_HOOK}", "start": "bash {_HOOK}"}}}}')
    for name in (".bashrc", ".profile", ".bash_profile", ".env"):
        (folder / name).write_text(FORGE)
    if not (folder / ".git").exists():
        for name in ("objects", "refs"):
            (folder / ".git" / name).mkdir(parents=True)
        (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    with (folder / ".git/config").open("a") as config:
        config.write(f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = /app/{_HOOK}\n\thooksPath = /app\n")


class Cheat(NamedTuple):
    """One cheat: a change to the files of an attempt, with or without the task's solution applied first."""

    name: str
    plant: Plant
    remedy: str
    solved: bool = True


_SEPARATE = "run programs of the attempt in a process of their own, and write the reward from test.sh after they ended"
CHEATS = (
    Cheat("files that tools run by themselves write the reward", _read_by_tools, _SEPARATE, solved=False),
    Cheat("programs of the attempt write the reward", _programs(PYTHON_FORGE, FORGE), _SEPARATE),
    Cheat(
        "programs of the attempt do nothing and end with exit code 0",
        _programs(PYTHON_PASS, PASS),
        "look for what a passed test prints or writes, and do not take exit code 0 alone for it",
    ),
    Cheat("a file of the attempt is taken for reward.txt", _answers("1.00\n"), "compute the reward in test.sh"),
    Cheat(
        "a file of the attempt is taken for reward.json",
        _answers('{"reward": 1.00}\n'),
        "compute the reward in test.sh",
    ),
)


async def _ground(task: TaskSpec, sandbox: Sandbox) -> str:
    """Return the folder whose files a cheat changes: where commands run, unless that is the root of an image."""
    if sandbox.workdir != "/":
        return sandbox.workdir
    named = " ".join(shlex.quote(artifact.source) for artifact in task.artifacts)
    found = await sandbox.run(
        f"for p in {named} ~; do [ -d $p ] && [ $p != / ] && echo $p && exit; done", CLEAR_SECONDS
    )
    return found.output.strip() or "/tmp"  # noqa: S108 - inside


async def _try(cheat: Cheat, task: TaskSpec, pools: TrialPools) -> VerifierResult:
    sandbox = await pools.open(task)

    async def attempt(stage: TaskSpec) -> str:
        if cheat.solved and stage.solution is not None:
            await solve(stage, sandbox)
        place = await _ground(task, sandbox)
        with tempfile.TemporaryDirectory() as folder:
            await sandbox.get(place, Path(folder))
            await asyncio.to_thread(cheat.plant, Path(folder), task.environment.files)
            await sandbox.run(f"cd {shlex.quote(place)} && find . -mindepth 1 -delete", CLEAR_SECONDS)
            await sandbox.put(Path(folder), place)
        return ""

    try:
        return await run_stages(task, sandbox, pools.verifier, attempt)
    finally:
        await sandbox.close()


async def forgeries(task: TaskSpec, pools: TrialPools) -> tuple[TaskProblem, ...]:
    """Return one problem for every cheat that earns more than the null agent."""
    try:
        nothing = (await run_null(task, pools)).reward or 0.0
        earned = [(cheat, (await _try(cheat, task, pools)).reward or 0.0) for cheat in CHEATS]
    except (SandboxLost, TreeRefused, OSError) as fault:
        return (TaskProblem(task.directory, f"could not be checked: {fault}", "fix the sandbox and try again"),)
    return tuple(
        TaskProblem(task.verifier.script, f"gives a cheat reward {reward:g}: {cheat.name}", cheat.remedy)
        for cheat, reward in earned
        if reward > nothing
    )


async def require_unforgeable(tasks: object, corpus: Iterable[TaskSpec], pools: TrialPools) -> None:
    """Raise if an attempt can forge the reward of a task and `tasks.refuse_forgeable` is set."""
    if not isinstance(tasks, HarborTasks) or not tasks.refuse_forgeable:
        return
    slots = asyncio.Semaphore(AT_ONCE)

    async def found(task: TaskSpec) -> tuple[TaskProblem, ...]:
        async with slots:
            return await forgeries(task, pools)

    problems = [problem for each in await asyncio.gather(*map(found, corpus)) for problem in each]
    if problems:
        remedy = "fix or remove these tasks, or set tasks.refuse_forgeable = false"
        raise AriseError("tasks", Exit.TASKS, "\n".join(map(str, problems)), "nothing was started", remedy)
