"""One file that needs nothing else."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arise.cli.app import app as command


@pytest.fixture(scope="module")
def exported(run: Path, second_run: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("export") / "out.html"
    done = CliRunner().invoke(command, ["view", str(run), str(second_run), "--export", str(path)])
    assert done.exit_code == 0, done.output
    assert "first, second" in done.output
    return path.read_text(encoding="utf-8")


def test_the_exported_file_loads_nothing(exported: str) -> None:
    assert "<script" not in exported
    assert "<link" not in exported
    assert not re.findall(r'\b(?:src|action|href)="(?!#)[^"]*"', exported)
    assert not re.findall(r"url\(", exported)
    assert "default-src 'none'" in exported


def test_every_link_leads_to_a_place_in_it(exported: str) -> None:
    ids = re.findall(r'\bid="([^"]+)"', exported)
    assert len(ids) == len(set(ids))
    anchors = set(re.findall(r'href="#([^"]+)"', exported))
    assert len(anchors) > 40
    assert anchors <= set(ids)


def test_it_holds_every_page_of_every_run(exported: str) -> None:
    for name in ("first", "second"):
        for title in ("Overview", "Pool", "Sampler", "Tasks", "Judge and cost", "Evaluation", "Health", "Rubric r001"):
            assert f'aria-label="{name}: {title}"' in exported
        assert f'aria-label="{name}: Rollout ' in exported
    assert 'aria-label="Compare"' in exported


def test_a_place_that_cannot_be_written_is_one_message(run: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["view", str(run), "--export", str(tmp_path / "no" / "out.html")])
    assert done.exit_code == 5
    assert "cannot write" in done.output
