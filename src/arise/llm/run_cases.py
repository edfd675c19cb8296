"""Read the rollouts and the pool of a run folder as cases for a judge check; read-only, also during a run."""

import json
import sqlite3
from pathlib import Path

import zstandard

from arise.config import HarborTasks
from arise.config.file import load_config
from arise.llm.cases import Cases, CasesError
from arise.run.chunks import Place, read_rollout
from arise.run.read_only import read_only
from arise.tasks import CorpusError, load_corpus
from arise.types import Pool
from arise.types.codec import from_json


def cases_of_run(folder: Path, limit: int) -> Cases:
    """Return the newest rollouts of a run with its current pool."""
    database = folder / "run.db"
    if not database.is_file():
        raise CasesError(f"{folder}: holds no run; name a run folder or a file of cases")
    try:
        db = read_only(database)
    except sqlite3.Error as error:
        raise CasesError(f"{database} cannot be read: {error}") from None
    try:
        state = db.execute("SELECT state FROM iterations WHERE state IS NOT NULL ORDER BY k DESC LIMIT 1").fetchone()
        rows = db.execute(
            "SELECT task_id, chunk, start, length FROM rollouts WHERE fault = '' ORDER BY k DESC, id LIMIT ?", (limit,)
        ).fetchall()
    finally:
        db.close()
    pool = from_json(Pool, json.loads(zstandard.decompress(state[0]))["pool"]) if state else Pool()
    if not pool.pairs or not rows:
        raise CasesError(f"{folder}: the run has no rubric or no rollout yet; let it go on")
    config = load_config(folder / "config.toml")
    source = Path(config.tasks.train) if isinstance(config.tasks, HarborTasks) else folder / "tasks" / "train"
    try:
        tasks = {found.task.id: found.task for found in load_corpus(source)}
    except CorpusError as error:
        raise CasesError(f"{source}: {error}") from None
    chunks = folder / "trajectories"
    found = tuple((tasks[name], read_rollout(chunks, Place(*place))) for name, *place in rows if name in tasks)
    return Cases(pool, found, {})
