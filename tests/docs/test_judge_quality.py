"""The study of the judge's quality: its table is what its published attempts say."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "docs" / "results" / "judge-quality"


def test_the_table_of_the_judge_study_is_recomputed_from_its_attempts() -> None:
    words = [sys.executable, str(ROOT / "scripts" / "judge_quality.py"), "table", str(STUDY)]
    table = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert table.count("\n") == 11, "a head and nine judges"
    assert table in (STUDY / "report.md").read_text("utf-8")
