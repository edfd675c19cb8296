"""The learning rate over updates (Table 2: warm-up, then constant)."""


def learning_rate(update: int, peak: float, warmup_updates: int) -> float:
    """Table 2 — the rate of optimizer update 0, 1, ...: linear to `peak` over `warmup_updates`, then constant."""
    if update < 0:
        raise ValueError(f"update = {update} must not be negative")
    if update + 1 >= warmup_updates:
        return peak
    return peak * (update + 1) / warmup_updates
