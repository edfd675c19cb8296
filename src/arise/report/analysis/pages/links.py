"""Addresses of the pages of an analysis."""

from urllib.parse import quote, urlencode

SECTIONS = (("", "Gaps"), ("attempts", "Attempts"))


class AnalysisLinks:
    """Addresses within one analysis, which is served alone."""

    root = ""

    def page(self, section: str = "") -> str:
        return f"/{section}"

    def rubric(self, behaviour: str) -> str:
        return f"/gaps/{quote(behaviour, safe='')}"

    def attempts(self, **chosen: str | int) -> str:
        kept = {name: value for name, value in chosen.items() if value}
        return "/attempts" + (f"?{urlencode(kept)}" if kept else "")

    def trajectory(self, attempt: str, turn: int | None = None) -> str:
        address = f"/attempts/{quote(attempt, safe='')}"
        return address if turn is None else f"{address}?turn={turn}#turn-{turn}"
