"""`docs/analyst.md` says of each detector what the code says."""

from pathlib import Path

import pytest

from arise.analyst.catalogue import wordings
from arise.analyst.detectors import DETECTORS

PAGE = (Path(__file__).parents[3] / "docs" / "analyst.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("pattern_id", sorted(DETECTORS))
def test_the_page_describes_every_detector(pattern_id: str) -> None:
    d = DETECTORS[pattern_id]
    name = wordings()[pattern_id].pattern.name
    assert f"| {pattern_id} {name} | {d.when} | {d.passes} | {d.blind} |" in PAGE
