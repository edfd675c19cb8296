"""A tiny pretrained model that calls tools, own tasks, and the settings to train on them."""

from pathlib import Path

from tests.e2e.commands import Done
from tests.e2e.runs import call
from tests.task_folders import write_task
from tests.tool_models import SYSTEM, write_tool_model

SETTINGS = (
    "train.iterations=2",
    "train.tasks_per_iteration=2",
    "train.group_size=4",
    "optimizer.precision=fp32",
    "optimizer.learning_rate=1e-3",
    "optimizer.warmup_updates=0",
    "model.kind=pretrained",
    "model.lora_rank=4",
    "tasks.kind=harbor",
    'tasks.allow_overlap=["three"]',
    "judge.kind=none",
    "agent.max_turns=4",
    "agent.max_tokens=64",
    'agent.tools=["bash"]',
    f"agent.system_prompt={SYSTEM}",
    "evaluation.attempts=1",
)


class OwnModel:
    """A folder with a model, tasks and a cache."""

    def __init__(self, root: Path) -> None:
        self.root, self.cache = root, root / "cache"
        self.model = write_tool_model(root / "model")
        for name in ("train/one", "train/two", "eval/three"):
            write_task(root / name)

    def arguments(self, *changes: str) -> list[str]:
        places = (
            f"model.name={self.model}",
            f"tasks.train={self.root / 'train'}",
            f"tasks.evaluation={self.root / 'eval'}",
        )
        return [part for change in (*SETTINGS, *places, *changes) for part in ("--set", change)]

    def train(self, name: str, *changes: str) -> Done:
        return call(self.cache, "train", "--run-dir", str(self.root / name), *self.arguments(*changes))
