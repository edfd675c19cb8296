"""Write instances as Harbor task directories: training and evaluation disjoint, one task type held out entirely."""

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path

import numpy as np

from arise.config import WorldTasks
from arise.types import Task
from arise.world.depth import make_deep_instance
from arise.world.instance import Instance, make_instance
from arise.world.kinds import KINDS, Kind, at_difficulty

SCRIPTS = ("tool", "check", "report")

TASK_TOML = """schema_version = "1.4"

[task]
name = "arise-world/{task_id}"
description = "Generated task of type {task_type}."

[metadata]
category = "{domain}"
task_types = ["{task_type}"]

[agent]
timeout_sec = 600.0

[verifier]
timeout_sec = 20.0

[environment]
network_mode = "no-network"
workdir = "/app"
"""

DOCKERFILE = "FROM debian:bookworm-slim\nWORKDIR /app\nCOPY . /app/\n"

TEST = """#!/bin/sh
passed=1
for wanted in /tests/expected/*; do
  cmp -s "$wanted" "/app/${wanted##*/}" || passed=0
done
if [ -f /tests/original ]; then
  kept=0
  for file in /app/*; do cmp -s "$file" /tests/original && kept=1; done
  [ $kept = 1 ] || passed=0
fi
echo $passed > /logs/verifier/reward.txt
"""


def instances(world: WorldTasks, split: str) -> Iterator[tuple[Task, Instance]]:
    """Yield the tasks of a split (`train`, `eval` or `demo`) in order, without end.

    The hash of an instance's content decides its split, so splits are disjoint at any size.
    """
    kinds, weights = _mix(world, split)
    random = np.random.default_rng([world.seed, *split.encode()])
    seen: set[str] = set()
    while True:
        kind = kinds[int(random.choice(len(kinds), p=weights))]
        if world.depth:
            instance: Instance = make_deep_instance(kind, world.depth, random)
        else:
            instance = make_instance(at_difficulty(kind, world.difficulty), random, world.corrections)
        digest = _digest(instance)
        if digest in seen or _split_of(digest) != split:
            continue
        seen.add(digest)
        task_id = f"{kind.task_type}-{digest[:8]}"
        yield Task(task_id, instance.instruction, (kind.task_type,), kind.domain), instance


def write_task(task: Task, instance: Instance, directory: Path) -> Path:
    """Write one Harbor task directory below `directory`."""
    root = directory / task.id
    files = instance.environment()
    _write(root / "environment", files | {"Dockerfile": DOCKERFILE})
    _write(root, {"instruction.md": task.instruction + "\n", "task.toml": _task_toml(task)})
    _write(root / "solution", {"solve.sh": "#!/bin/sh\n" + "\n".join(instance.oracle()) + "\n"})
    _write(root / "tests", {"test.sh": TEST})
    _write(root / "tests" / "expected", _expected(instance))
    if instance.kind.in_place:
        _write(root / "tests", {"original": files[instance.inputs[0]]})
    return root


def write_environment(instance: Instance, directory: Path) -> None:
    """Write only the files available to the agent."""
    _write(directory, instance.environment())


def _expected(instance: Instance) -> dict[str, str]:
    """Return the expected files by running the oracle: only the tools define the correct result."""
    wanted = [*instance.outputs, *(["report.txt"] if instance.kind.report else [])]
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        write_environment(instance, place)
        script = "\n".join(instance.oracle())
        subprocess.run(["/bin/sh", "-c", script], cwd=place, check=True, capture_output=True, timeout=20)
        return {name: (place / name).read_text() for name in wanted}


def _write(root: Path, files: Mapping[str, str]) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = root / name
        path.write_text(text)
        if name in SCRIPTS or name.endswith(".sh"):
            path.chmod(0o755)


def _task_toml(task: Task) -> str:
    return TASK_TOML.format(task_id=task.id, task_type=task.task_types[0], domain=task.domain)


def _mix(world: WorldTasks, split: str) -> tuple[list[Kind], list[float]]:
    """Return the kinds of a split with their probabilities; the held-out type occurs only in evaluation."""
    known = {kind.task_type for kind in KINDS}
    unknown = sorted({world.held_out, *world.mix} - known - {""})
    if unknown:
        raise ValueError(f"world: unknown task type {unknown[0]!r}; the world makes {', '.join(sorted(known))}")
    kinds = [kind for kind in KINDS if split == "eval" or kind.task_type != world.held_out]
    weights = [world.mix.get(kind.task_type, 0.0 if world.mix else 1.0) for kind in kinds]
    if split == "eval" and world.held_out and not world.mix.get(world.held_out):
        weights = [w if kind.task_type != world.held_out else 1.0 for kind, w in zip(kinds, weights, strict=True)]
    if not sum(weights) > 0:
        raise ValueError(f"world.mix = {dict(world.mix)} leaves no task type for the {split} split")
    return kinds, [weight / sum(weights) for weight in weights]


def _digest(instance: Instance) -> str:
    content = repr((instance.kind.task_type, sorted(instance.environment().items()), instance.wording))
    return blake2b(content.encode(), digest_size=16).hexdigest()


def _split_of(digest: str) -> str:
    """Assign a quarter of the instances to evaluation, a quarter to demonstrations and the rest to training."""
    return ("eval", "demo", "train", "train")[int(digest[-1], 16) % 4]
