"""The README promises equal runs only on the condition that makes them possible: deterministic commands."""

from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_promise_of_equal_runs_names_its_condition() -> None:
    promise = README.split("- **Exactness:**")[1].split("\n- **")[0]
    assert "as long as the commands that agents run are deterministic" in " ".join(promise.split())
    for culprit in ("race", "`$$`", "`date`", "`ls -l`"):
        assert culprit in promise
