"""Every key of both task formats is honoured, or refused by name before anything is spent.

The keys are those of harbor 0.25.0 (schema 1.4, which also reads 1.0 to 1.3) and benchflow 0.7.11 (schema 1.3).
"""

import tomllib
from pathlib import Path
from typing import get_args

import pytest
import yaml

from arise.config.tasks import TaskNeed
from arise.harbor.pool import harbor_capabilities
from arise.tasks import TaskProblem, read_task, refused
from arise.tasks.keys import unknown
from arise.types import SandboxCapabilities, SetupCommand, TaskSpec
from tests.task_folders import DIFF_TEST
from tests.unit.tasks.format_keys import BENCHFLOW, HARBOR
from tests.unit.tasks.test_needs import ASKED, read

IMAGES = SandboxCapabilities(
    "overlay",
    images=True,
    networks=frozenset({"none", "endpoint", "allow", "public"}),
    users=True,
    healthcheck=True,
    setup=True,
    separate_verifier=True,
    steps=True,
)


def test_no_key_of_the_formats_is_unknown() -> None:
    assert list(unknown(tomllib.loads(HARBOR))) == []
    assert list(unknown(yaml.safe_load(BENCHFLOW))) == []
    assert dict(unknown({"sandbx": {}, "verifier": {"zzz": 1}})) == {"sandbx": "sandbox", "verifier.zzz": ""}


REFUSED = {
    "gpu_types": '[environment]\ngpu_types = ["H100"]',
    "tpu": '[environment.tpu]\ntype = "v6e"\ntopology = "2x4"',
    "gpus": "[verifier.environment]\ngpus = 1",
    "network": '[environment]\nnetwork_mode = "denylist"\nblocked_hosts = ["github.com"]',
    "service": '[[verifier.collect]]\ncommand = "true"\nservice = "db"',
    "hardening": "[verifier.hardening]\ncleanup_conftests = false",
    "artifacts": 'artifacts = [{ source = "/x", exclude = ["*.tmp"] }]',
    "mcp_servers": '[[environment.mcp_servers]]\nname = "x"',
    "prompt_prefix": '[agent]\nprompt_prefix = "x"',
}
WHERE = {
    "gpu_types": "environment.gpu_types: asks for H100",
    "tpu": "environment.tpu: asks for v6e 2x4",
    "gpus": "verifier.environment.gpus: asks for 1",
    "network": "environment.blocked_hosts, environment.blocked_urls: nothing keeps programs from github.com",
    "service": "verifier.collect.0.service",
    "hardening": "verifier.hardening.cleanup_conftests",
    "artifacts": "artifacts.0.exclude",
}


@pytest.mark.parametrize("need", REFUSED)
def test_a_key_that_is_not_honoured_is_refused_by_name(need: str, tmp_path: Path) -> None:
    task = read(tmp_path / "t", REFUSED[need])
    (problem,) = refused(task, IMAGES)
    assert WHERE.get(need, need) in str(problem)
    assert f'"{need}" to tasks.ignore' in problem.remedy
    assert refused(task, IMAGES, (need,)) == []


def test_gpu_types_without_a_gpu_ask_for_nothing(tmp_path: Path) -> None:
    assert refused(read(tmp_path / "t", '[environment]\ngpus = 0\ngpu_types = ["H100"]'), IMAGES) == []


def test_harbor_itself_provides_accelerators(tmp_path: Path) -> None:
    for at, need in enumerate(("gpu_types", "tpu", "gpus")):
        assert refused(read(tmp_path / str(at), REFUSED[need]), harbor_capabilities()) == []


def files(folder: Path, texts: dict[str, str]) -> TaskSpec | list[TaskProblem]:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_task(folder)


def markdown(head: str, body: str = "## prompt\nDo it.\n", **more: str) -> dict[str, str]:
    text = f"---\nschema_version: '1.3'\n{head}---\n{body}"
    return {"task.md": text, "environment/Dockerfile": "FROM x\n", "verifier/test.sh": DIFF_TEST, **more}


STRATEGY = "---\nverifier:\n  default_strategy: j\n  strategies: {s: {type: script}, j: {type: llm-judge}}\n---\n"
DOCUMENTS = {
    "agents": (markdown("agents: {roles: {a: {agent: x}}}\n"), "roles"),
    "scenes": (markdown("scenes: [{name: s}]\n"), "roles"),
    "user": (markdown("user: {model: x}\n"), "roles"),
    "## role:critic": (markdown("", "Do it.\n## role:critic\nComplain.\n"), "roles"),
    "role.critic.md": (markdown("", **{"prompts/role.critic.md": "Complain."}), "roles"),
    "profile:": (markdown("profile: code-change\n"), "profile"),
    "benchflow:": (markdown("benchflow: {environment: {manifest: m.toml}}\n"), "benchflow"),
    "verifier.md": (markdown("", **{"verifier/verifier.md": STRATEGY}), "verifier_document"),
    "sandbox.cpu_count": (markdown("sandbox: {cpu_count: 2}\n"), "unknown_keys"),
    "environment.blocked_urls": (
        markdown("sandbox: {network_mode: denylist, blocked_urls: ['https://example.org/a']}\n"),
        "network",
    ),
    "trajectory.json": (markdown("", **{"trajectory.json": "{}"}), "prior_trajectory"),
    ".harborignore": (markdown("", **{"verifier/.harborignore": "*.pyc\n"}), "harborignore"),
}


@pytest.mark.parametrize("where", DOCUMENTS)
def test_a_part_of_a_task_that_is_not_honoured_is_refused_by_name(where: str, tmp_path: Path) -> None:
    texts, need = DOCUMENTS[where]
    task = files(tmp_path, texts)
    assert isinstance(task, TaskSpec), task
    (problem,) = refused(task, IMAGES)
    assert where in str(problem)
    assert f'"{need}" to tasks.ignore' in problem.remedy
    assert refused(task, IMAGES, (need,)) == []


def test_every_need_is_tested() -> None:
    named = {*ASKED, *REFUSED, *(need for _, need in DOCUMENTS.values()), "dockerfile", "compose", "env"}
    assert named == set(get_args(TaskNeed))


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ('[environment]\nblocked_hosts = ["a"]', "blocked_hosts or blocked_urls belong together"),
        ('[environment]\nnetwork_mode = "denylist"', "blocked_hosts or blocked_urls belong together"),
        ('[agent]\nnetwork_mode = "denylist"', "belongs to the environment"),
        ('[environment]\nmemory = "1G"\nmemory_mb = 512', "memory is '1G' and memory_mb is 512"),
        ('[environment.tpu]\ntype = "v6e"\ntopology = "big"', "environment.tpu.topology"),
        ("[sandbox]\ncpus = 1\n[environment]\ncpus = 2", "sandbox and environment are the same section"),
        ('[[environment.setup_commands]]\ncommand = "x"\nhost_lock = "l"', "setup_commands.0.host_lock"),
        ('[[environment.setup_commands]]\ncommand = "x"\nservice = "db"', "setup_commands.0.service"),
    ],
)
def test_values_that_contradict_each_other_are_problems(toml: str, said: str, tmp_path: Path) -> None:
    texts = {"task.toml": f'[task]\nname = "t"\n{toml}\n', "instruction.md": "x", "tests/test.sh": DIFF_TEST}
    found = files(tmp_path, texts)
    assert isinstance(found, list)
    assert [said in str(problem) for problem in found] == [True], found


def test_other_spellings_of_benchflow_are_honoured(tmp_path: Path) -> None:
    head = (
        "name: short\nimage: base:1\noracle: {TOKEN: abc, timeout_sec: 5}\n"
        "sandbox:\n  setup_commands: [make, {command: seed, timeout_sec: 9, cwd: /db, env: {A: b}, user: db}]\n"
        "verifier: {sandbox_mode: separate, sandbox: {image: 'tests:1'}, service: main}\n"
    )
    task = files(tmp_path, markdown(head, **{"oracle/solve.sh": "true\n"}))
    assert isinstance(task, TaskSpec), task
    assert (task.task.id, task.environment.image) == ("benchflow/short", "base:1")
    assert task.solution is not None
    assert (task.solution.env, task.solution.timeout) == ({"TOKEN": "abc"}, 5)
    assert task.environment.setup == (SetupCommand("make"), SetupCommand("seed", 9, "/db", {"A": "b"}, "db"))
    assert task.verifier.place is not None
    assert task.verifier.place.image == "tests:1"
    assert refused(task, IMAGES) == []


def test_other_headings_belong_to_the_prompt(tmp_path: Path) -> None:
    body = "Ignored.\n## prompt\nFirst.\n\n## Details\nSecond.\n\\## role:x\nThird.\n"
    task = files(tmp_path, markdown("", body))
    assert isinstance(task, TaskSpec), task
    assert task.task.instruction == "First.\n\n## Details\nSecond.\n## role:x\nThird."
    assert refused(task, IMAGES) == []


STEPS = """artifacts = ["/out"]
[task]
name = "t"
[environment]
workdir = "/srv"
env = { A = "a" }
[verifier]
user = "checker"
environment_mode = "separate"
env = { B = "b", C = "b" }
collect = [{ command = "one" }]
[[steps]]
name = "one"
[[steps]]
name = "two"
[steps.verifier]
environment_mode = "shared"
env = { C = "c" }
collect = [{ command = "two" }]
"""


def steps_of(folder: Path, toml: str, **more: str) -> TaskSpec:
    texts = {"task.toml": toml, "environment/Dockerfile": "FROM x\n", **more}
    for name in ("one", "two"):
        texts |= {f"steps/{name}/instruction.md": "x", f"steps/{name}/tests/test.sh": DIFF_TEST}
    task = files(folder, texts)
    assert isinstance(task, TaskSpec), task
    return task


def test_a_step_is_verified_as_the_task_says_where_it_says_nothing_itself(tmp_path: Path) -> None:
    one, two = (step.verifier for step in steps_of(tmp_path, STEPS).steps)
    assert (one.user, one.env, [hook["command"] for hook in one.collect]) == ("checker", {"B": "b", "C": "b"}, ["one"])
    assert one.place is not None
    assert (one.place.workdir, one.place.env, one.place.image) == ("/srv", {"A": "a"}, "")
    assert (two.env, two.place) == ({"B": "b", "C": "c"}, None)
    assert [hook["command"] for hook in two.collect] == ["one", "two"]


@pytest.mark.parametrize(
    ("line", "need", "where"),
    [
        ('agent = { user = "x" }', "user", "steps.two.agent.user"),
        ('agent = { network_mode = "no-network" }', "network", "steps.two.agent.network_mode"),
        ("verifier = { environment = { gpus = 1 } }", "gpus", "steps.two.verifier.environment.gpus"),
    ],
)
def test_needs_of_a_step_are_refused_by_name(line: str, need: str, where: str, tmp_path: Path) -> None:
    toml = f'[task]\nname = "t"\n[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n{line}\n'
    task = steps_of(tmp_path, toml)
    (problem,) = refused(task, IMAGES)
    assert where in str(problem)
    assert f'"{need}" to tasks.ignore' in problem.remedy


TWO_STEPS = '[task]\nname = "t"\n[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n'


def test_steps_share_the_tests_of_their_task_below_their_own(tmp_path: Path) -> None:
    shared = {"tests/test.sh": DIFF_TEST, "tests/expected.txt": "42\n"}
    task = steps_of(tmp_path, TWO_STEPS, **shared)
    (one, _) = task.steps
    assert one.verifier.folders == (tmp_path / "tests", tmp_path / "steps/one/tests")
    assert one.verifier.script == tmp_path / "steps/one/tests/test.sh"
    assert refused(task, IMAGES) == []
    for name in ("one", "two"):
        (tmp_path / "steps" / name / "tests/test.sh").unlink()
    (tmp_path / "steps/two/tests").rmdir()
    again = read_task(tmp_path)
    assert isinstance(again, TaskSpec), again
    assert [step.verifier.script for step in again.steps] == [tmp_path / "tests/test.sh"] * 2
    assert again.steps[1].verifier.folders == (tmp_path / "tests",)


def test_a_step_without_any_tests_is_a_problem(tmp_path: Path) -> None:
    steps_of(tmp_path, TWO_STEPS)
    (tmp_path / "steps/two/tests/test.sh").unlink()
    problems = read_task(tmp_path)
    assert isinstance(problems, list)
    assert [str(problem.path.relative_to(tmp_path)) for problem in problems] == ["steps/two/tests/test.sh"]


def test_a_fault_in_the_file_of_a_task_with_steps_is_the_only_problem(tmp_path: Path) -> None:
    steps_of(tmp_path, TWO_STEPS)
    (tmp_path / "task.toml").write_text(f"{TWO_STEPS}[[steps]]\nname = 3\n")
    problems = read_task(tmp_path)
    assert isinstance(problems, list)
    assert [problem.what.partition(":")[0] for problem in problems] == ["steps.2.name"]


def test_a_folder_for_both_programs_is_read_from_its_task_md(tmp_path: Path) -> None:
    harbor = {"task.toml": '[task]\nname = "a/harbor"\n', "instruction.md": "By Harbor.", "tests/test.sh": DIFF_TEST}
    both = files(tmp_path / "both", harbor | markdown("name: flow\n"))
    assert isinstance(both, TaskSpec), both
    assert (both.layout, both.task.id) == ("benchflow", "benchflow/flow")
    notes = files(tmp_path / "notes", harbor | {"task.md": "# What this task is for\n"})
    assert isinstance(notes, TaskSpec), notes
    assert (notes.layout, notes.task.id, notes.task.instruction) == ("harbor", "a/harbor", "By Harbor.")


@pytest.mark.parametrize("version", ["0.0", "1.4", "2.0", "next"])
def test_any_schema_of_a_task_toml_is_read_as_harbor_does(version: str, tmp_path: Path) -> None:
    texts = {"task.toml": f'schema_version = "{version}"\n', "instruction.md": "x", "tests/test.sh": DIFF_TEST}
    assert isinstance(files(tmp_path, texts), TaskSpec)


@pytest.mark.parametrize(
    "mark", ["<!-- harbor-canary GUID 1 -->\n", "# BENCHMARK DATA, canary GUID 1\n\n", "\n<!-- Canary -->\n# canary\n"]
)
def test_the_marks_of_a_benchmark_are_not_part_of_its_instruction(mark: str, tmp_path: Path) -> None:
    texts = {"task.toml": "", "instruction.md": f"{mark}# Title\nDo it.\n# canary\n", "tests/test.sh": DIFF_TEST}
    task = files(tmp_path, texts)
    assert isinstance(task, TaskSpec), task
    assert task.task.instruction == "# Title\nDo it.\n# canary"


def test_what_a_document_only_notes_about_itself_needs_nothing(tmp_path: Path) -> None:
    task = files(tmp_path, markdown("benchflow: {document_version: '0.6'}\nverifier: {pytest_plugins: [ctrf]}\n"))
    assert isinstance(task, TaskSpec), task
    assert refused(task, IMAGES) == []
