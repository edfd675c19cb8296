"""What every worker does: connect to the driver, answer its requests in order, and end when the driver does.

Runs inside the environment of the training library. Besides that library it may import the standard library, numpy and
the pure parts of ARISE: `boot.py` makes the package importable.
"""

import os
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from arise.engines.remote.channel import ChannelClosed, Packet, receive, send


@dataclass(frozen=True, eq=False)
class Row:
    """One row of a batch: token ids, which of them were generated, their behaviour log-probs and the advantage."""

    ids_U: NDArray[np.int64]
    generated_U: NDArray[np.bool_]
    logprob_U: NDArray[np.float64]
    advantage: float


@dataclass(frozen=True)
class UpdateSpec:
    """One update: the constants of Eq. 19, the optimizer's values for this update, and what the whole batch holds."""

    min_ratio: float
    max_ratio: float
    dual_clip: float
    temperature: float
    learning_rate: float
    betas: tuple[float, float]
    weight_decay: float
    max_grad_norm: float
    token_count: int


@dataclass(frozen=True)
class Taken:
    """What an update did, over all processes; `grad_norm` is nan where the loss was not finite."""

    loss: float
    grad_norm: float
    kept_tokens: int
    dual_clipped_tokens: int
    max_abs_log_ratio: float


class Backend(Protocol):
    """The part of a worker that knows its library; every process of the group calls each method at the same time."""

    def facts(self) -> dict[str, Any]:
        """Return what the driver records; `share`, from 0: processes of the same number get the same rows."""
        ...

    def update(self, rows: Sequence[Row], spec: UpdateSpec) -> Taken: ...
    def score(self, rows: Sequence[Row], temperature: float) -> list[NDArray[np.float64]]: ...
    def export(self, folder: str) -> None: ...
    def export_adapter(self, folder: str) -> None: ...
    def save(self, folder: str) -> None: ...
    def load(self, folder: str) -> None: ...


def serve(open_backend: Callable[[dict[str, Any]], Backend]) -> None:
    """Connect, announce this process, then answer requests until the driver closes the connection."""
    host, _, port = os.environ["ARISE_DRIVER"].rpartition(":")
    rank = take_numbers()
    connection = socket.create_connection((host, int(port)))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    send(connection, Packet({"secret": os.environ.pop("ARISE_SECRET"), "rank": rank, "pid": os.getpid()}))
    requests: SimpleQueue[Packet] = SimpleQueue()
    threading.Thread(target=_listen, args=(connection, requests), daemon=True).start()
    backend: Backend | None = None
    while True:
        request = requests.get()
        try:
            if request.facts["do"] == "open":
                backend = open_backend(dict(request.facts))
                send(connection, Packet(backend.facts()))
            else:
                assert backend is not None, "the first request opens the model"
                send(connection, answer(backend, request))
        except ChannelClosed:
            os._exit(0)
        except Exception as error:
            traceback.print_exc()
            text = f"{type(error).__name__}: {error}"
            send(connection, Packet({"error": text, "fatal": not isinstance(error, ValueError)}))


SLURM_NAMES = {"RANK": "SLURM_PROCID", "LOCAL_RANK": "SLURM_LOCALID", "LOCAL_WORLD_SIZE": "SLURM_NTASKS_PER_NODE"}


def take_numbers() -> int:
    """Return the rank of this process; copy SLURM's numbers to the variables that training libraries read."""
    for name, given in SLURM_NAMES.items():
        if name not in os.environ and given in os.environ:
            os.environ[name] = os.environ[given]
    if "RANK" not in os.environ:
        sys.exit("policy.launch must number its processes: neither RANK nor SLURM_PROCID is set")
    return int(os.environ["RANK"])


def answer(backend: Backend, request: Packet) -> Packet:
    """Carry out one request."""
    facts, kind = dict(request.facts), request.facts["do"]
    if kind == "update":
        given = facts["spec"]
        spec = UpdateSpec(**{**given, "betas": tuple(given["betas"])})
        return Packet(vars(backend.update(unpacked(request), spec)))
    if kind == "score":
        found = backend.score(unpacked(request), float(facts["temperature"]))
        return Packet({}, {"logprob": np.concatenate([*found, np.zeros(0)])})
    if kind == "export":
        backend.export(facts["folder"])
    elif kind == "export_adapter":
        backend.export_adapter(facts["folder"])
    elif kind == "save":
        backend.save(facts["folder"])
    elif kind == "load":
        backend.load(facts["folder"])
    else:
        raise ValueError(f"no such request: {kind!r}")
    return Packet({})


def packed(rows: Sequence[Row]) -> dict[str, NDArray[Any]]:
    """Return the rows of one process as arrays of a message."""
    return {
        "length": np.array([len(row.ids_U) for row in rows], dtype=np.int64),
        "advantage": np.array([row.advantage for row in rows], dtype=np.float64),
        "ids": np.concatenate([*(row.ids_U for row in rows), np.zeros(0, np.int64)]),
        "generated": np.concatenate([*(row.generated_U for row in rows), np.zeros(0, np.bool_)]),
        "logprob": np.concatenate([*(row.logprob_U for row in rows), np.zeros(0)]),
    }


def unpacked(packet: Packet) -> list[Row]:
    """Return the rows of a message."""
    arrays, rows, start = packet.arrays, list[Row](), 0
    for length, advantage in zip(arrays["length"].tolist(), arrays["advantage"].tolist(), strict=True):
        part = slice(start, start + length)
        rows.append(Row(arrays["ids"][part], arrays["generated"][part], arrays["logprob"][part], advantage))
        start += length
    return rows


def _listen(connection: socket.socket, requests: "SimpleQueue[Packet]") -> None:
    """End the process when the driver is gone, even in the middle of an update."""
    try:
        while True:
            requests.put(receive(connection))
    except ChannelClosed:
        sys.stdout.flush()
        os._exit(0)
