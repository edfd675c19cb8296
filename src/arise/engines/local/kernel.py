"""The native forward pass: compiled on this machine, loaded with ctypes; None where that cannot be done."""

import ctypes
import functools
import platform
from ctypes import POINTER, c_float, c_int, c_int32, c_void_p
from pathlib import Path

from arise.native.build import build

_COMMON = ("-O3", "-std=gnu11", "-ffp-contract=fast", "-Wno-psabi", "-fPIC", "-shared", "-pthread")
_FLAGS = ((*_COMMON, "-march=native"), _COMMON)


class Shape(ctypes.Structure):
    """C structure `Shape`."""

    _fields_ = (
        *((name, c_int32) for name in ("hidden", "layers", "heads", "kv_heads", "head", "inner", "vocabulary")),
        ("eps", c_float),
    )


LAYER = ("norm", "qkv", "qkv_bias", "q_norm", "k_norm", "out", "mlp_norm", "gate_up", "down")


class Layer(ctypes.Structure):
    """C structure `Layer`."""

    _fields_ = tuple((name, c_void_p) for name in LAYER)


class Model(ctypes.Structure):
    """C structure `Model`."""

    _fields_ = (
        ("shape", Shape),
        ("layers", POINTER(Layer)),
        *((name, c_void_p) for name in ("embedding", "norm", "lm_head", "cosines", "sines", "arenas", "team")),
    )


_SIGNATURES: dict[str, tuple[object, tuple[object, ...]]] = {
    "panel_width": (c_int, ()),
    "start_team": (c_void_p, (c_int,)),
    "end_team": (None, (c_void_p,)),
    "pack_weight": (None, (c_void_p, c_void_p, c_int, c_int, c_void_p)),
    "forward": (c_int, (POINTER(Model), c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_int, c_void_p)),
    "logits": (c_int, (POINTER(Model), c_void_p, c_int, c_void_p, c_int)),
    "choose": (None, (c_void_p, c_void_p, c_int, c_int, c_int, c_void_p, c_void_p, c_void_p, c_void_p)),
}


@functools.cache
def kernel() -> ctypes.CDLL | None:
    """Return the compiled library; None if it cannot be compiled or loaded on this machine."""
    path = build("kernel", Path(__file__).parent / "native", _FLAGS, _loads, key=_processor())
    return None if path is None else _load(path)


def _load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _loads(path: Path) -> bool:
    try:
        return int(_load(path).panel_width()) > 0
    except (OSError, AttributeError):
        return False


def _processor() -> str:
    """Return what the instructions of -march=native depend on: the flags of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
