"""`arise tasks check` names the fault of every one of more than 200 broken variants, and none of the sound tasks."""

import json
from pathlib import Path

from typer.testing import CliRunner

from arise.cli.tasks import app
from tests.unit.tasks.variants import TEMPLATES, write_variants


def test_the_fault_of_every_variant_is_named(tmp_path: Path) -> None:
    words = write_variants(tmp_path)
    for template in TEMPLATES:
        template.write(tmp_path / f"sound-{template.name}")
    assert len(words) >= 200
    done = CliRunner().invoke(app, ["check", str(tmp_path), "--lint", "--json"])
    said = json.loads(done.stdout)
    found: dict[str, list[str]] = {}
    for problem in said["problems"]:
        path = Path(problem["path"]).relative_to(tmp_path)
        found.setdefault(path.parts[0], []).append(f"{path}: {problem['problem']}")
        assert problem["remedy"]
    unnamed = {name: found.get(name, []) for name, word in words.items() if word not in "\n".join(found.get(name, []))}
    assert unnamed == {}
    assert sorted(found) == sorted(words)
