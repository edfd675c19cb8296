"""The rollouts and the pool of a run folder as cases to check a judge on; the run may still be going on."""

from pathlib import Path

from arise.config import HarborTasks
from arise.config.file import load_config
from arise.errors import AriseError
from arise.llm.check.cases import Cases, CasesError
from arise.run.chunks import read_rollout
from arise.run.reader import RunReader
from arise.tasks import CorpusError, load_corpus


def cases_of_run(folder: Path, limit: int) -> Cases:
    """Return the newest rollouts of a run, with the pool of its last commit."""
    database = folder / "run.db"
    if not database.is_file():
        raise CasesError(f"{folder}: holds no run; name a run folder or a file of cases")
    try:
        with RunReader.open(folder) as run:
            pool, rows = run.last_pool(), run.newest_rollouts(limit)
    except AriseError as error:
        raise CasesError(f"{database} cannot be read: {error.what}") from None
    if not pool.pairs or not rows:
        raise CasesError(f"{folder}: the run has no rubric or no rollout yet; let it continue")
    config = load_config(folder / "config.toml")
    source = Path(config.tasks.train) if isinstance(config.tasks, HarborTasks) else folder / "tasks" / "train"
    try:
        tasks = {found.task.id: found.task for found in load_corpus(source)}
    except CorpusError as error:
        raise CasesError(f"{source}: {error}") from None
    chunks = folder / "trajectories"
    found = tuple((tasks[name], read_rollout(chunks, place)) for name, place in rows if name in tasks)
    return Cases(pool, found, {})
