"""Parts by import path in real runs: built-in ones change nothing, those of a downstream project train and resume."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.runs import call, digest, settings

BUILT_IN = """
from arise.baselines.uniform import Uniform
from arise.compose.policies import embedded_engine
from arise.config import PolicyConfig, SeparateCredit
from arise.config.sampler import CapabilitySampling
from arise.analyst import OfflineJudge, OfflineReflector
from arise.method.credit import separate_credit
from arise.method.sampler import CapabilitySampler
from arise.world.shell_agent import ShellAgent
from arise.sandbox import BubblewrapPool

def sampler(*, tasks, random, **options): return CapabilitySampler(tasks, random, CapabilitySampling(**options))
def credit(rubric_weight): return separate_credit(SeparateCredit(rubric_weight=rubric_weight))
def judge(*, seed): return OfflineJudge(seed=seed)
def reflector(*, seed): return OfflineReflector()
def agent(*, engine, limits, sampling): return ShellAgent(engine, engine.chat, limits, sampling)
def engine(*, model, config): return embedded_engine(PolicyConfig(), config, model)
def sandbox(*, size, hidden): return BubblewrapPool(size, hidden=hidden)
class Tracker:
    def __init__(self, folder, settings): self.file = (folder / "mine.txt").open("a")
    def log(self, iteration, values): self.file.write(f"{iteration} {values['pool']}\\n")
    def close(self): self.file.close()
"""

OWN = Path(__file__).with_name("downstream.py")
"""The parts of the downstream project; it may use the public API only."""


def section(name: str, path: str, **options: object) -> list[str]:
    changes = [f"{name}.kind=import", f"{name}.path={path}"]
    return changes + [f"{name}.options.{key}={value}" for key, value in options.items()]


def test_built_in_parts_by_import_path_give_the_same_run(
    finished: tuple[Path, str], cache: Path, tmp_path: Path
) -> None:
    whole, _ = finished
    (tmp_path / "built_in.py").write_text(BUILT_IN)
    names = {"sampler": "sampler", "judge": "judge", "reflector": "reflector", "agent": "agent", "policy": "engine"}
    changes = [change for name, part in names.items() for change in section(name, f"built_in:{part}")]
    changes += section("credit", "built_in:credit", rubric_weight=0.3) + section("sandbox", "built_in:sandbox")
    changes.append('trackers.use=[{kind = "import", path = "built_in:Tracker"}]')
    run = tmp_path / "run"
    done = call(cache, "train", "--run-dir", str(run), *settings(changes), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert digest(run) == digest(whole)
    assert (run / "mine.txt").read_text().splitlines()[0] == "1 0"
    assert len((run / "mine.txt").read_text().splitlines()) == 4


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A downstream package with its configuration."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "downstream").mkdir()
    (folder / "downstream" / "__init__.py").touch()
    (folder / "downstream" / "parts.py").write_text(OWN.read_text(encoding="utf-8"))
    return folder


OWN_PARTS = [
    change
    for name, part, options in (
        ("sampler", "Frontier", {"prior": 2}),
        ("judge", "CommandJudge", {}),
        ("reflector", "OneRubric", {}),
        ("credit", "OutcomeOrRubrics", {"rubric_weight": 0.5}),
        ("agent", "OneTurn", {"greeting": '"Begin ."'}),
    )
    for change in section(name, f"downstream.parts:{part}", **options)
]


def test_a_downstream_project_trains_resumes_and_reads_its_run(project: Path, cache: Path, tmp_path: Path) -> None:
    run, again = tmp_path / "run", tmp_path / "again"
    changes = [*OWN_PARTS, "train.iterations=2", "pool.update_every=1", "evidence.window=1"]
    done = call(cache, "train", "--run-dir", str(run), *settings(changes), folder=project)
    assert done.returncode == 0, done.stderr
    assert "2/2  pass" in done.stdout
    assert call(cache, "verify", str(run), folder=project).returncode == 0

    # The same run in two stretches: its sampler must continue where it was committed.
    first = [*changes[:-3], "train.iterations=1", *changes[-2:]]
    assert call(cache, "train", "--run-dir", str(again), *settings(first), folder=project).returncode == 0
    config = (again / "config.toml").read_text().replace("iterations = 1\n", "iterations = 2\n")
    (again / "config.toml").write_text(config)
    resumed = call(cache, "resume", str(again), "--change", "train.iterations", folder=project)
    assert resumed.returncode == 0, resumed.stderr
    assert digest(again) == digest(run)

    script = Path(__file__).with_name("downstream_reader.py")
    read = subprocess.run([sys.executable, str(script), str(run)], capture_output=True, text=True, check=True)
    assert read.stdout.splitlines() == [
        "iterations 2",
        "rubric r001 Look before you act.",
        "draws ['adaptive']",
        "verdicts 8",
    ]


def test_the_downstream_project_uses_the_public_api_only() -> None:
    for path in (OWN, OWN.with_name("downstream_reader.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith("arise."), ast.unparse(node)
            if isinstance(node, ast.Import):
                assert not [name for name in node.names if name.name.startswith("arise.")]


def test_a_resume_without_the_package_says_what_is_missing(project: Path, cache: Path, tmp_path: Path) -> None:
    changes = [*OWN_PARTS, "train.iterations=1"]
    assert call(cache, "train", "--run-dir", str(tmp_path / "run"), *settings(changes), folder=project).returncode == 0
    done = call(cache, "resume", str(tmp_path / "run"), folder=tmp_path)
    assert done.returncode == 2
    assert "no module named 'downstream'" in done.stderr
    assert "PYTHONPATH" in done.stderr
