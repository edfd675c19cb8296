# ruff: noqa: E501 - one fault per line
"""Sound tasks in both formats, and every way to break each of them: over 200 broken variants, each with its fault."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Settings = dict[str, Any]
Break = Callable[[Path], object]

TEST = 'if [ "$(cat answer.txt)" = 42 ]; then r=1; else r=0; fi\necho $r > /logs/verifier/reward.txt\n'
SOLVE = "echo 42 > answer.txt\n"
SKILL = "---\nname: counting\ndescription: Count things.\n---\nCount.\n"
COMMON: Settings = {
    "metadata": {"category": "data", "task_types": ["data-cleaning-and-normalization"]},
    "agent": {"timeout_sec": 60.0, "user": "root"},
    "verifier": {"timeout_sec": 20.0, "env": {"A": "b"}, "reward_range": [0.0, 1.0]},
    "environment": {
        "cpus": 1, "memory_mb": 256, "storage_mb": 100, "workdir": "/app", "env": {"COLOUR": "${COLOUR:-blue}"},
        "network_mode": "allowlist", "allowed_hosts": ["example.org"],
        "healthcheck": {"command": "true", "interval_sec": 1, "retries": 2},
    },
    "solution": {"env": {"A": "b"}},
    "artifacts": ["/app/answer.txt", {"source": "/app/x", "destination": "x"}],
}  # fmt: skip


@dataclass(frozen=True)
class Template:
    """A sound task — `HARBOR.write(folder, settings)`; `settings` differ from its own where a variant is broken."""

    name: str
    settings: Settings
    tests: str
    solution: str

    @property
    def file(self) -> str:
        return "task.md" if self.name == "benchflow" else "task.toml"

    def write(self, folder: Path, settings: Settings | None = None) -> Path:
        settings = deepcopy(self.settings if settings is None else settings)
        if self.name != "benchflow" and "task" in settings and settings["task"].get("name") == "NAME":
            settings["task"]["name"] = folder.name
        files = {
            f"{self.tests}/test.sh": TEST,
            f"{self.solution}/solve.sh": SOLVE,
            "environment/Dockerfile": "FROM debian\nWORKDIR /app\nCOPY data.csv notes.txt /data/\n",
            "environment/data.csv": "a,b\n1,2\n",
            "environment/notes.txt": "Nothing.\n",
            "environment/skills/counting/SKILL.md": SKILL,
        }
        if self.name == "benchflow":
            files["task.md"] = f"---\n{yaml.safe_dump(settings)}---\n## prompt\nWrite 42 to answer.txt.\n"
        else:
            files["task.toml"] = as_toml(settings)
            files["instruction.md"] = "Write 42 to answer.txt.\n"
        if self.name == "steps":
            files["steps/one/instruction.md"] = "Write 42.\n"
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        return folder


def as_toml(settings: Mapping[str, Any]) -> str:
    """Write settings as TOML with inline tables only: one line per key."""
    return "".join(f"{key} = {_inline(value)}\n" for key, value in settings.items())


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {_inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return str(value) if isinstance(value, float) else json.dumps(value)


HARBOR = Template("harbor", {"schema_version": "1.4", "task": {"name": "NAME"}, **COMMON}, "tests", "solution")
BENCHFLOW = Template("benchflow", {"schema_version": "1.3", **COMMON}, "verifier", "oracle")
STEPS = Template("steps", {**HARBOR.settings, "steps": [{"name": "one"}]}, "steps/one/tests", "steps/one/solution")
TEMPLATES = (HARBOR, BENCHFLOW, STEPS)

# Bad values by key; the report must name the key, and the word that stands with it.
BAD_VALUES: dict[str, tuple[tuple[Any, str], ...]] = {
    "schema_version": ((["1.4"], "valid string"),),
    "metadata.category": ((3, "must be text"),),
    "metadata.task_types": (("data", "not a list"), (["no-such-type"], "unknown task type")),
    "agent.timeout_sec": ((0.0, "greater than 0"), (-1.0, "greater than 0"), ("soon", "number"), (float("nan"), "")),
    "agent.user": (("two words", "pattern"), (-1, "")),
    "verifier.timeout_sec": ((0.0, "greater than 0"), (float("inf"), "finite")),
    "verifier.env": (("A=b", "dictionary"), ({"A B": "c"}, "name of a variable"), ({"A": [1]}, "not text")),
    "verifier.reward_range": (([1.0, 0.0], "lower bound"), ([0.0], "at least 2")),
    "verifier.type": (("llm-judge", "test-script"),),
    "verifier.environment_mode": (("apart", "'shared' or 'separate'"),),
    "environment.cpus": ((-1, "greater than or equal to 0"), ("two", "number")),
    "environment.memory_mb": ((-5, "greater than or equal to 0"), ([], "number")),
    "environment.memory": (("lots", "size such as '2G'"),),
    "environment.storage_mb": ((float("nan"), "finite"), ("10G", "number")),
    "environment.storage": (("2 floppies", "size such as '2G'"),),
    "environment.workdir": (("app", "absolute path"), ("/app/../etc", "absolute path")),
    "environment.env": ((["A"], "dictionary"), ({"1A": "b"}, "name of a variable")),
    "environment.network_mode": (("offline", "'no-network'"), ("public", "allowed_hosts has an effect")),
    "environment.allowed_hosts": (([], "names no host"), (["a b"], "pattern"), ("example.org", "list")),
    "environment.docker_image": (("two words", "pattern"), ("", "pattern")),
    "environment.os": (("windows", "linux"),),
    "environment.healthcheck": (({"interval_sec": 1}, "command"), ({"command": " "}, "command")),
    "environment.skills_dir": (("skills", "absolute path"),),
    "solution.env": ((3, "dictionary"),),
    "artifacts": (
        ([{"source": "/a", "destination": "../b"}], "relative path"), ([{}], "source"), ("/app", "list"),
        ([{"source": "/a", "destination": "/b"}], "relative path"), ([""], "source"),
    ),
    "multi_step_reward_strategy": (("max", "'mean' or 'final'"),),
}  # fmt: skip
MISSPELT = {
    "agent.timeout_secs": "timeout_sec", "agent.timeot_sec": "timeout_sec", "verifier.timeout": "timeout_sec",
    "environment.memory_md": "memory_mb", "environment.healthchek": "healthcheck", "environment.network_mod": "network_mode",
    "verifer": "verifier", "enviroment": "environment", "artefacts": "artifacts", "environment.work_dir": "workdir",
}  # fmt: skip
OF_STEPS: dict[str, tuple[tuple[Any, str], ...]] = {
    "steps": (
        ([{"name": "../one"}], "steps.0.name"), ([{"name": "one"}, {"name": "one"}], "two steps"), ([{}], "steps.0.name"),
        ([{"name": "absent"}], "steps/absent/instruction.md: is missing"), ("one", "list"),
        ([{"name": "one", "min_reward": "high"}], "min_reward"), ([{"name": "one", "min_reward": float("nan")}], "min_reward"),
        ([{"name": "one", "agent": {"timeout_sec": 0}}], "steps.0.agent.timeout_sec"),
    ),
}  # fmt: skip


def changed(settings: Settings, key: str, value: Any) -> Settings:
    """Return the settings with another value for a dotted key."""
    settings = deepcopy(settings)
    *parents, last = key.split(".")
    section = settings
    for parent in parents:
        section = section.setdefault(parent, {})
    section[last] = value
    return settings


def write(name: str, content: str | bytes) -> Break:
    def make(task: Path) -> None:
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return make


def link(name: str, target: str) -> Break:
    def make(task: Path) -> None:
        (task / name).unlink(missing_ok=True)
        (task / name).symlink_to(target)

    return make


def without(name: str) -> Break:
    return lambda task: (task / name).unlink()


def appended(name: str, line: str) -> Break:
    return lambda task: (task / name).write_text((task / name).read_text() + line)


copied = appended("environment/Dockerfile", "COPY . /app\n")


def file_faults(of: Template) -> Iterator[tuple[str, Break, str]]:
    """Yield the faults in the files of a task: a name, what makes it, and words of the report."""
    yield from script_faults(f"{of.tests}/test.sh", f"{of.solution}/solve.sh")
    yield from image_faults("environment/Dockerfile", of.tests)
    yield from folder_faults(of, f"{of.solution}/solve.sh")
    yield from (format_faults_of_markdown() if of.file == "task.md" else format_faults_of_toml(of))


def script_faults(test: str, solve: str) -> Iterator[tuple[str, Break, str]]:
    yield from (
        ("no-tests", without(test), "test.sh: is missing"),
        ("empty-tests", write(test, "\n"), "test.sh: is empty"),
        ("binary-tests", write(test, b"\xff\xfe"), "not UTF-8"),
        ("windows-tests", write(test, TEST.replace("\n", "\r\n")), "Windows line ends"),
        ("tests-that-do-not-parse", write(test, "if true; then\necho 1 > /logs/verifier/reward.txt\n"), "not readable by bash"),
        ("no-reward", write(test, "diff a b\n"), "never writes a reward"),
        ("reward-elsewhere", write(test, "echo 1 > /tmp/reward.txt\n"), "never writes a reward"),
        ("no-solution-in-its-folder", without(solve), "solve.sh: is missing"),
        ("empty-solution", write(solve, ""), "solve.sh: is empty"),
        ("solution-that-does-not-parse", write(solve, "echo 'never closed\n"), "not readable by bash"),
        ("windows-solution", write(solve, "echo 42 > answer.txt\r\n"), "Windows line ends"),
    )  # fmt: skip


def image_faults(docker: str, tests: str) -> Iterator[tuple[str, Break, str]]:
    yield from (
        ("no-from", write(docker, "RUN true\n"), "has no FROM"),
        ("empty-dockerfile", write(docker, ""), "has no FROM"),
        ("late-from", write(docker, "RUN true\nFROM debian\n"), "stands before FROM"),
        ("no-instruction-of-docker", appended(docker, "INSTALL jq\n"), "INSTALL is no instruction"),
        ("half-an-instruction", appended(docker, "WORKDIR\n"), "WORKDIR says nothing"),
        ("missing-file", appended(docker, "COPY absent.csv /data/\n"), "copies 'absent.csv'"),
        ("second-missing-file", appended(docker, "COPY data.csv absent.csv /data/\n"), "copies 'absent.csv'"),
        ("missing-file-in-json", appended(docker, 'COPY ["absent.csv", "/data/"]\n'), "copies 'absent.csv'"),
        ("no-match", appended(docker, "ADD *.parquet /data/\n"), "copies '*.parquet'"),
        ("outside-the-build", appended(docker, f"COPY ../{tests}/test.sh /x\n"), "outside its folder"),
        ("no-target", appended(docker, "COPY data.csv\n"), "names no target"),
    )  # fmt: skip


def folder_faults(of: Template, solve: str) -> Iterator[tuple[str, Break, str]]:
    skill = "environment/skills/counting/SKILL.md"
    yield from (
        ("leaked-tests", lambda task: [write("environment/t.sh", TEST)(task), copied(task)], "shows the agent test.sh"),
        ("leaked-solution", lambda task: [copied(task), *(write(p, SOLVE + "# the secret\n")(task) for p in (solve, "environment/a.sh"))], "shows the agent solve.sh"),
        ("skill-without-frontmatter", write(skill, "Count.\n"), "does not begin with YAML"),
        ("skill-without-description", write(skill, "---\nname: counting\n---\nCount.\n"), "has no description"),
        ("skill-folder-without-skill", write("environment/skills/other/notes.txt", "x"), "SKILL.md: is missing"),
        ("link-to-the-host", link("environment/x", "/etc/passwd"), "link out of its folder"),
        ("link-in-a-circle", link("environment/x", "x"), "link in a circle"),
        ("pipe", lambda task: os.mkfifo(task / "environment/pipe"), "neither a file"),
        ("odd-name", lambda task: (task / "environment/a\nb").touch(), "not printable"),
        ("large-file", lambda task: os.truncate(_touched(task / "environment/big"), 2 * 1024**3), "has 2147483648 bytes"),
        ("no-task-file", without(of.file), "has no task.toml or task.md"),
    )  # fmt: skip


def format_faults_of_markdown() -> Iterator[tuple[str, Break, str]]:
    yield "key-twice", write("task.md", "---\nagent: {}\nagent: {}\n---\nDo it.\n"), "stands twice"
    yield "future-schema", write("task.md", "---\nschema_version: '2.0'\n---\nDo it.\n"), "only schema 1.x"
    yield "template", write("task.md", "---\nname: {{ name }}\n---\nDo it.\n"), "line 2: found unhashable key"
    yield "bad-yaml", write("task.md", "---\na: [1\n---\nDo it.\n"), "is not YAML"
    yield "no-prompt", write("task.md", "---\nschema_version: '1.3'\n---\n"), "has no instruction"
    yield "no-frontmatter", write("task.md", "Do it.\n"), "does not begin with YAML"


def format_faults_of_toml(of: Template) -> Iterator[tuple[str, Break, str]]:
    instruction = "steps/one/instruction.md" if of.name == "steps" else "instruction.md"
    yield "key-twice", appended("task.toml", "agent = {}\n"), "is not TOML"
    yield "bad-toml", write("task.toml", "[task\n"), "is not TOML"
    yield "nameless", write("task.toml", '[task]\nversion = "1"\n'), "task.name"
    yield "no-instruction", without(instruction), "instruction.md: is missing"
    yield "empty-instruction", write(instruction, " \n"), "has no instruction"
    yield "nul-in-instruction", write(instruction, "a\0b"), "NUL"


def _touched(path: Path) -> Path:
    path.touch()
    return path


def write_variants(folder: Path) -> dict[str, str]:
    """Write every broken variant as a folder of its own; return the words that its report must hold."""
    words: dict[str, str] = {}

    def add(name: str, of: Template, expected: str, settings: Settings | None = None) -> Path:
        words[f"{of.name}-{name}"] = expected
        return of.write(folder / f"{of.name}-{name}", settings)

    for of in TEMPLATES:
        values = BAD_VALUES | (OF_STEPS if of is STEPS else {})
        for key, bad in values.items() if of is not STEPS else OF_STEPS.items():
            for number, (value, word) in enumerate(bad):
                add(f"{key}-{number}", of, word, changed(of.settings, key, value))
        for key, meant in MISSPELT.items() if of is not STEPS else ():
            value = {} if "." not in key else 1.0
            add(f"misspelt-{key}", of, f"did you mean '{meant}'", changed(of.settings, key, value))
        for name, breaks, word in file_faults(of):
            breaks(add(name, of, word))
    return words
