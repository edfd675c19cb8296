"""Delete run folders: only files that a run wrote, and never a locked run."""

import shutil
from fnmatch import fnmatchcase
from pathlib import Path

from arise.errors import AriseError, Exit
from arise.run.folder import BEFORE_A_RUN, CONFIG_FILE, claim, require_run

DATABASE = "run.db"
WRITTEN = (
    *BEFORE_A_RUN,
    f"{CONFIG_FILE}*",
    f".{CONFIG_FILE}",
    f"{DATABASE}*",
    "checkpoints",
    "evaluations",
    "export",
    "retention.done",
    "tasks",
    "trackers",
    "trajectories",
)
"""Files that commands write into a run folder."""


def require_removable(folder: Path) -> None:
    """Refuse a folder that is not a run, or that contains other files."""
    require_run(folder)
    if not (folder / DATABASE).is_file():
        raise _refused(f"{folder} holds a {CONFIG_FILE} and no {DATABASE}: it is not a run", "delete it yourself")
    if folder.is_symlink():
        raise _refused(f"{folder} is a link", "name the folder that it points to")
    names = sorted(path.name for path in folder.iterdir())
    foreign = [name for name in names if not any(fnmatchcase(name, known) for known in WRITTEN)]
    if foreign:
        raise _refused(f"{folder} also holds {foreign[0]}, which is not part of a run", "move it elsewhere, then retry")


def remove(folder: Path) -> None:
    """Delete a run folder."""
    require_removable(folder)
    lock = claim(folder)
    try:
        # Without its configuration the folder is no longer a run, even if the deletion is interrupted.
        (folder / CONFIG_FILE).unlink()
        shutil.rmtree(folder)
    finally:
        lock.release()


def _refused(what: str, remedy: str) -> AriseError:
    return AriseError("storage", Exit.STORAGE, what, "nothing was deleted", remedy)
