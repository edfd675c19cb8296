"""Addresses of all pages; they stay valid while a run grows."""

from urllib.parse import quote, urlencode


class Links:
    """Addresses within one run; pages count iterations and slots from 1, the store counts slots from 0."""

    def __init__(self, run: str) -> None:
        self.root = f"/runs/{quote(run, safe='')}"

    def page(self, section: str = "") -> str:
        return f"{self.root}/{section}" if section else self.root

    def rubric(self, rubric_id: str) -> str:
        return f"{self.root}/pool/{quote(rubric_id, safe='')}"

    def sampler(self, number: int, slot: int | None = None) -> str:
        return f"{self.root}/sampler?iteration={number}" + ("" if slot is None else f"#slot-{slot + 1}")

    def task(self, task_id: str) -> str:
        return f"{self.root}/tasks/{quote(task_id, safe='/')}"

    def rollouts(self, **chosen: str | int | None) -> str:
        kept = {name: value for name, value in chosen.items() if value not in (None, "")}
        return f"{self.root}/rollouts" + (f"?{urlencode(kept)}" if kept else "")

    def attempts(self, task_type: str = "") -> str:
        """Return the address of the held-out attempts, all or those of one task type."""
        kept = f"?{urlencode({'task_type': task_type})}" if task_type else ""
        return f"{self.root}/evaluation{kept}#attempts"

    def trajectory(self, rollout_id: str, turn: int | None = None) -> str:
        address = f"{self.root}/rollouts/{quote(rollout_id, safe='/')}"
        return address if turn is None else f"{address}?turn={turn}#turn-{turn}"
