"""What a release promises about its own files: one version, a complete lock, a changelog with releases."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import arise

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements" / "test.lock"


def locked() -> dict[str, str]:
    lines = [line for line in LOCK.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return dict(line.split("==") for line in lines)


def test_the_lock_holds_names_and_versions_only() -> None:
    assert len(locked()) > 50
    assert all(canonicalize_name(name) == name and Version(version).local is None for name, version in locked().items())


def test_the_lock_satisfies_every_direct_requirement() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for extra in ("train", "dev", "docs") for line in extras[extra])]
    needed = [Requirement(line) for line in lines]
    versions = locked()
    missing = [str(one) for one in needed if not one.specifier.contains(versions.get(canonicalize_name(one.name), "0"))]
    assert missing == []


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {arise.__version__}\n" in citation
    releases = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert releases[0] == "Unreleased"
    assert releases[1].split()[0] == arise.__version__


def test_the_workflow_runs_what_ci_runs() -> None:
    assert "make test\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "run: bash .ci/run" in (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
