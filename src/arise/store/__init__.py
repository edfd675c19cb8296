"""The run folder: SQLite (the commit of an iteration is the last, durable act), trajectory chunks, checkpoints."""

from arise.store.reader import RunReader
from arise.store.record import IterationRecord
from arise.store.run_store import RunStore

__all__ = ["IterationRecord", "RunReader", "RunStore"]
