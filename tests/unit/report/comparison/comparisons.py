"""Folders of comparisons with random outcomes, and the independent script over them."""

import json
import random
import subprocess
import sys
from pathlib import Path

from tests.synthetic_runs import write_run

SCRIPT = Path(__file__).parents[4] / "scripts" / "recompute_tables.py"
METHODS = ("arise", "outcome-only")


def a_comparison(folder: Path, seeds: int = 3, **options: object) -> Path:
    """Random outcomes, a fault among them."""
    for method in METHODS:
        for seed in range(seeds):
            dice = random.Random(f"{method} {seed}")
            chance = 0.7 if method == "arise" else 0.4

            def success(
                task: str, attempt: int, k: int, dice: random.Random = dice, chance: float = chance
            ) -> bool | None:
                return None if dice.random() < 0.05 else dice.random() < chance * k / 6

            place = folder / "runs" / method / f"seed-{seed}"
            write_run(place, seed=seed, success=success, tasks=7, events=[(2, "r1", "born")], **options)  # type: ignore[arg-type]
    page = {"base": "configs/embedded.toml", "methods": METHODS, "seeds": list(range(seeds)), "jobs": 1, "threads": 1}
    page |= {"command": "arise compare base.toml --out DIR", "machine": {"cores": 2}}
    (folder / "comparison.json").write_text(json.dumps(page))
    return folder


def recompute(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", str(SCRIPT), str(folder)], capture_output=True, text=True, check=False, timeout=60
    )
