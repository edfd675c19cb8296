"""Tasks on disk: Harbor and BenchFlow directories, corpora of them, and the registry of task types."""

from arise.tasks.assemble import BUILD_FILES
from arise.tasks.corpus import Corpus, load_corpus, read_corpus
from arise.tasks.directory import read_task
from arise.tasks.needs import refused, without
from arise.tasks.problem import CorpusError, TaskProblem
from arise.tasks.registry import TaskType, task_types

__all__ = [
    "BUILD_FILES",
    "Corpus",
    "CorpusError",
    "TaskProblem",
    "TaskType",
    "load_corpus",
    "read_corpus",
    "read_task",
    "refused",
    "task_types",
    "without",
]
