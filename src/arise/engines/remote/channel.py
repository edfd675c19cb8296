"""Messages between the driver and a worker process: a JSON header, then the bytes of its arrays.

Imported by both sides, so it needs only the standard library and numpy.
"""

import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_HEADER = 64 << 20
LENGTH = struct.Struct(">Q")


class ChannelClosed(ConnectionError):  # noqa: N818 - what happened, not which class of error it is
    """The other side has closed the connection or died."""


@dataclass(frozen=True, eq=False)
class Packet:
    """One message — `Packet({"do": "score"}, {"ids": array})`."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def send(connection: socket.socket, packet: Packet) -> None:
    """Send one message; blocks until all of it is written."""
    arrays = {name: np.ascontiguousarray(array) for name, array in packet.arrays.items()}
    shapes = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    header = json.dumps({"facts": dict(packet.facts), "arrays": shapes}).encode()
    try:
        connection.sendall(LENGTH.pack(len(header)) + header)
        for array in arrays.values():
            connection.sendall(array.reshape(-1).view(np.uint8).data)
    except OSError as error:
        raise ChannelClosed(str(error)) from None


def receive(connection: socket.socket) -> Packet:
    """Read one message; raises ChannelClosed at the end of the stream."""
    (length,) = LENGTH.unpack(_exactly(connection, LENGTH.size))
    if length > MAX_HEADER:
        raise ChannelClosed(f"the header announces {length} bytes: the other side speaks another protocol")
    header = json.loads(_exactly(connection, length))
    arrays = {}
    for name, dtype, shape in header["arrays"]:
        kind = np.dtype(dtype)
        size = kind.itemsize * int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(_exactly(connection, size), dtype=kind).reshape(shape)
    return Packet(header["facts"], arrays)


def _exactly(connection: socket.socket, size: int) -> bytearray:
    buffer = bytearray(size)
    view, done = memoryview(buffer), 0
    while done < size:
        try:
            count = connection.recv_into(view[done:])
        except OSError as error:
            raise ChannelClosed(str(error)) from None
        if count == 0:
            raise ChannelClosed("the connection has ended")
        done += count
    return buffer
