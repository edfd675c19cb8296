"""Mirror a run to TensorBoard, Weights & Biases, Trackio and MLflow; trackers run in threads and cannot stop a run.

A tracker that raises or falls behind is dropped with one warning. The run store remains the only record.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from arise.config.records import TrackerName, TrackersConfig
from arise.ports import Tracker

log = logging.getLogger(__name__)

WAITING = 256
"""Maximum queue length of a tracker before it is dropped as hanging."""
CLOSING_SECONDS = 30.0


Open = Callable[[], Tracker]


class Mirrors:
    """All trackers of a run; use it as a context manager."""

    def __init__(self, openers: Mapping[str, Open]) -> None:
        self._mirrors = [_Mirror(name, opener) for name, opener in openers.items()]

    def log(self, iteration: int, values: Mapping[str, float]) -> None:
        """Queue an iteration for every working tracker without blocking."""
        for mirror in self._mirrors:
            mirror.put((iteration, values))

    def __enter__(self) -> "Mirrors":
        return self

    def __exit__(self, *error: object) -> None:
        deadline = time.monotonic() + CLOSING_SECONDS
        for mirror in self._mirrors:
            mirror.close(max(0.0, deadline - time.monotonic()))


class _Mirror:
    def __init__(self, name: str, opener: Open) -> None:
        self._name, self._opener = name, opener
        self._queue: queue.Queue[tuple[int, Mapping[str, float]] | None] = queue.Queue(WAITING)
        self._dropped, self._dropping = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._work, name=f"tracker {name}", daemon=True)

    def put(self, item: tuple[int, Mapping[str, float]] | None) -> None:
        if self._dropped.is_set():
            return
        if not self._thread.ident:
            self._thread.start()
        try:
            self._queue.put_nowait(item)
        except queue.Full:
            self._drop(f"{WAITING} iterations are waiting for it")

    def close(self, seconds: float) -> None:
        if self._thread.ident:
            self.put(None)
        if self._thread.ident and not self._dropped.is_set():
            self._thread.join(seconds)
            if self._thread.is_alive():
                self._drop("it did not finish in time")

    def _work(self) -> None:
        try:
            tracker = self._opener()
            while (item := self._queue.get()) is not None:
                tracker.log(*item)
            tracker.close()
        except ImportError as error:
            self._drop(f"{error}; to have it: pip install 'arise-rl[{self._name}]'")
        except BaseException as error:  # a tracker may even call sys.exit
            self._drop(str(error) or type(error).__name__)

    def _drop(self, why: str) -> None:
        with self._dropping:  # log the warning before the tracker is marked as dropped
            if not self._dropped.is_set():
                log.warning("tracker %s is dropped, the run continues: %s", self._name, why)
                self._dropped.set()


class TensorBoard:
    """Write event files below the run folder."""

    def __init__(self, folder: Path, _: TrackersConfig, __: Mapping[str, Any]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event, self._summary = Event, Summary
        self._writer = EventFileWriter(str(folder / "trackers" / "tensorboard"))

    def log(self, iteration: int, values: Mapping[str, float]) -> None:
        numbers = [self._summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._writer.add_event(self._event(step=iteration, wall_time=time.time(), summary=self._summary(value=numbers)))
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class WeightsAndBiases:
    """Log to wandb; offline unless `trackers.online` is set, to be uploaded later with `wandb sync`."""

    def __init__(self, folder: Path, chosen: TrackersConfig, settings: Mapping[str, Any]) -> None:
        import wandb

        self._run = wandb.init(
            project=chosen.project,
            name=folder.name,
            id=f"arise-{folder.name}",
            resume="allow" if chosen.online else None,
            dir=_made(folder / "trackers"),
            mode="online" if chosen.online else "offline",
            config=dict(settings),
        )

    def log(self, iteration: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=iteration)

    def close(self) -> None:
        self._run.finish()


class Trackio:
    """Log to a local Trackio project."""

    def __init__(self, folder: Path, chosen: TrackersConfig, settings: Mapping[str, Any]) -> None:
        import trackio

        self._run = trackio.init(project=chosen.project, name=folder.name, config=dict(settings), resume="allow")

    def log(self, iteration: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=iteration)

    def close(self) -> None:
        self._run.finish()


class MlFlow:
    """Log to MLflow: at MLFLOW_TRACKING_URI if `trackers.online` is set, else to a file in the run folder."""

    def __init__(self, folder: Path, chosen: TrackersConfig, settings: Mapping[str, Any]) -> None:
        from mlflow import MlflowClient

        place = None if chosen.online else f"sqlite:///{_made(folder / 'trackers')}/mlflow.db"
        self._client = MlflowClient(tracking_uri=place)
        experiment = self._client.get_experiment_by_name(chosen.project)
        number = experiment.experiment_id if experiment else self._client.create_experiment(chosen.project)
        self._run = self._client.create_run(number, run_name=folder.name).info.run_id
        for name, value in settings["train"].items():
            self._client.log_param(self._run, f"train.{name}", value)

    def log(self, iteration: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._client.log_metric(self._run, name, float(value), step=iteration)

    def close(self) -> None:
        self._client.set_terminated(self._run)


def _made(folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder.absolute())


KINDS: dict[TrackerName, Callable[..., Tracker]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
    "trackio": Trackio,
    "mlflow": MlFlow,
}
