"""Messages between processes: exact arrays, an end that is noticed, and nothing of another protocol."""

import socket
import threading

import numpy as np
import pytest

from arise.engines.remote.channel import ChannelClosed, Packet, receive, send
from arise.engines.remote.trainer import distribute
from arise.engines.remote.workers.loop import Row, packed, unpacked


def test_facts_and_arrays_arrive_exactly() -> None:
    here, there = socket.socketpair()
    arrays = {
        "ids": np.arange(200_000, dtype=np.int64),
        "mask": np.array([True, False]),
        "values": np.array([[0.1, -np.inf], [np.nan, 1e300]]),
        "none": np.zeros((0, 3)),
    }
    with here, there:
        sender = threading.Thread(target=send, args=(here, Packet({"do": "update", "n": [1, "→"]}, arrays)))
        sender.start()
        found = receive(there)
        sender.join()
    assert found.facts == {"do": "update", "n": [1, "→"]}
    for name, array in arrays.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)


@pytest.mark.parametrize("data", [b"", b"\x00\x00", b"\x00" * 7 + b'\x20{"facts"', b"GET / HTTP/1.1\r\n"])
def test_an_end_in_the_middle_or_another_protocol_is_noticed(data: bytes) -> None:
    here, there = socket.socketpair()
    with there:
        here.sendall(data)
        here.close()
        with pytest.raises(ChannelClosed):
            receive(there)


def test_rows_survive_packing_and_are_distributed_evenly() -> None:
    random = np.random.default_rng(0)
    lengths = [40, 3, 17, 90, 5, 60, 31]
    rows = [Row(random.integers(0, 9, n), random.random(n) < 0.5, random.normal(size=n), float(n)) for n in lengths]
    for given, found in zip(rows, unpacked(Packet({}, packed(rows))), strict=True):
        for name in ("ids_U", "generated_U", "logprob_U"):
            np.testing.assert_array_equal(getattr(given, name), getattr(found, name))
        assert given.advantage == found.advantage
    shares = distribute(lengths, 3)
    assert sorted(n for hand in shares for n in hand) == list(range(7))
    loads = [sum(lengths[n] for n in hand) for hand in shares]
    assert max(loads) - min(loads) <= 30
    assert distribute([5], 2) == [[0], []]
