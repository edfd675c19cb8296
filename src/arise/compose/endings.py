"""Errors for runs that ended early, with effect and remedy."""

from pathlib import Path

from arise.errors import AriseError, Exit
from arise.run.folder import CONFIG_FILE


def interrupted(folder: Path) -> AriseError:
    """Return the error after Ctrl-C or a signal."""
    if not (folder / CONFIG_FILE).exists():
        return AriseError(
            "interrupted", Exit.INTERRUPTED, "stopped by you", "no run was started", "the same command starts it"
        )
    return AriseError(
        "interrupted",
        Exit.INTERRUPTED,
        f"stopped by you in {folder}",
        "the last committed iteration and every finished group are kept",
        f"arise resume {folder}",
    )


def out_of_memory(folder: Path, error: RuntimeError) -> AriseError | None:
    """Return the error if memory ran out, else None; torch has no exception class for CPU memory."""
    if "allocate memory" not in str(error) and "out of memory" not in str(error):
        return None
    return AriseError(
        "memory",
        Exit.ENGINE,
        f"memory ran out: {str(error).splitlines()[0]}",
        "the run has ended; every committed iteration is kept",
        f"free memory and arise resume {folder}, or start again with a lower policy.token_budget (updates) or "
        "policy.batch_rows (sampling)",
    )
