"""The tests of an attempt one by one, from ctrf.json (Common Test Report Format), which pytest and others write.

The program that writes it also runs code of the attempt, so it is evidence for judges and readers and never the reward.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

SHOWN = 10
NAME_CHARS = 120
PASSED = "passed"


@dataclass(frozen=True)
class TestReport:
    """Every test with its status — `TestReport({"test_sum": "passed"})`."""

    __test__ = False  # not a test of pytest
    statuses: Mapping[str, str]

    @property
    def passed(self) -> int:
        """Return how many tests passed; a skipped test did not."""
        return sum(status == PASSED for status in self.statuses.values())

    def line(self) -> str:
        """Return one line that says how many tests passed and which did not."""
        wrong = [f"{name} ({status})" for name, status in self.statuses.items() if status != PASSED]
        more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        named = f"; not passed: {', '.join(wrong[:SHOWN])}{more}" if wrong else ""
        return f"[ctrf.json: {self.passed} of {len(self.statuses)} tests passed{named}]"

    def numbers(self) -> dict[str, float]:
        """Return the counts, to be stored with the numbers of the reward file."""
        return {"tests": float(len(self.statuses)), "tests passed": float(self.passed)}


def read_report(data: bytes) -> TestReport | None:
    """Return the report, or None if there is none or it is malformed; the attempt may have written any part of it."""
    try:
        tests = json.loads(data)["results"]["tests"]
        statuses = {str(test["name"])[:NAME_CHARS]: str(test["status"])[:NAME_CHARS] for test in tests}
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return TestReport(statuses) if statuses else None
