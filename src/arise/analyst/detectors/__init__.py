"""Executable detectors for every pattern of the behaviour catalogue, most informative first."""

from collections.abc import Mapping

from arise.analyst.detectors import debugging, efficiency, execution, understanding, verification
from arise.analyst.detectors.detector import Detector, Finding
from arise.analyst.trace import Trace

# Specific opportunities (an overwrite, a rejection, a visible check) before those that nearly every trace offers.
_RANK = "P12 P16 P04 P03 P08 P06 P07 P02 P20 P18 P11 P17 P10 P14 P09 P13 P19 P15 P05 P01"
_ALL = {
    detector.pattern_id: detector
    for module in (understanding, execution, verification, debugging, efficiency)
    for detector in module.DETECTORS
}
DETECTORS: Mapping[str, Detector] = {pattern_id: _ALL[pattern_id] for pattern_id in _RANK.split()}


def find_all(trace: Trace) -> dict[str, Finding]:
    """Return the findings of all applicable patterns, most informative first."""
    found = {pattern_id: detector.find(trace) for pattern_id, detector in DETECTORS.items()}
    return {pattern_id: finding for pattern_id, finding in found.items() if finding is not None}


__all__ = ["DETECTORS", "Detector", "Finding", "find_all"]
