"""Is this machine ready for a run? Each finding says what was found, and what to do where something is missing."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import psutil

from arise.config import Config, SmallModel
from arise.errors import Exit

GIB = 1 << 30
NEEDED_MEMORY, NEEDED_DISK = 3 * GIB, 2 * GIB
LEAST_FREE = 0.05
NEEDED_PYTHON = (3, 11)


class Finding(NamedTuple):
    """One thing looked at — `Finding("disk", "ok", "12 GiB free", "", Exit.OK)`; a failure carries an exit code."""

    name: str
    level: Literal["ok", "warning", "failure"]
    said: str
    remedy: str = ""
    exit_code: Exit = Exit.OK


def examine(config: Config, runs: Path) -> Iterator[Finding]:
    """Everything a run with this configuration needs, cheapest first; nothing leaves the machine."""
    yield _python()
    yield from _packages()
    yield _bubblewrap()
    yield _cgroups()
    yield _disk(runs)
    yield _memory()
    yield _cores()
    yield _start(config)
    yield from _judge(config)


def _python() -> Finding:
    major, minor, patch = sys.version_info[:3]
    said = f"{major}.{minor}.{patch}"
    if (major, minor) < NEEDED_PYTHON:
        return Finding("python", "failure", f"{said}, 3.11 or newer is needed", "install Python 3.11", Exit.ENGINE)
    return Finding("python", "ok", said)


def _packages() -> Iterator[Finding]:
    for name in ("torch", "transformers", "safetensors"):
        if importlib.util.find_spec(name) is None:
            remedy = "pip install 'arise-rl[train]'"
            yield Finding("packages", "failure", f"{name} is not installed", remedy, Exit.ENGINE)
            return
    yield Finding("packages", "ok", "torch, transformers and safetensors are installed")


def _bubblewrap() -> Finding:
    remedy = "apt-get install bubblewrap"
    if not shutil.which("bwrap"):
        return Finding("bubblewrap", "failure", "bwrap is not installed", remedy, Exit.ENGINE)
    probe = ["bwrap", "--ro-bind", "/", "/", "--unshare-pid", "--unshare-net", "--proc", "/proc", "true"]
    try:
        done = subprocess.run(probe, capture_output=True, text=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return Finding(
            "bubblewrap", "failure", "a sandbox did not start in 20 s", "try on an idle machine", Exit.ENGINE
        )
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or ["no message"]
        remedy = "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1, or run as root"
        return Finding("bubblewrap", "failure", f"a sandbox does not start: {why[0]}", remedy, Exit.ENGINE)
    return Finding("bubblewrap", "ok", "a sandbox starts")


def _cgroups() -> Finding:
    from arise.sandbox.cgroup import find_cgroups

    found = find_cgroups()
    if found is None:
        remedy = "run as root, or in a session with delegated control groups, to have the kernel's limits"
        return Finding("cgroups", "warning", "none: memory and processes of a command are not capped", remedy)
    return Finding("cgroups", "ok", f"version {found.version}, memory and processes of a command are capped")


def _disk(runs: Path) -> Finding:
    there = next(path for path in (runs.absolute(), *runs.absolute().parents) if path.exists())
    usage = shutil.disk_usage(there)
    said = f"{usage.free / GIB:.1f} GiB free ({usage.free / usage.total:.0%}) at {there}"
    if not os.access(there, os.W_OK):
        return Finding("disk", "failure", f"{there} cannot be written", "give another --run-dir", Exit.STORAGE)
    if usage.free < LEAST_FREE * usage.total or usage.free < NEEDED_DISK / 4:
        return Finding("disk", "failure", said, "free disk space, or give another --run-dir", Exit.STORAGE)
    if usage.free < NEEDED_DISK:
        return Finding("disk", "warning", said, f"a long run wants {NEEDED_DISK / GIB:.0f} GiB")
    return Finding("disk", "ok", said)


def _memory() -> Finding:
    free = psutil.virtual_memory().available
    said = f"{free / GIB:.1f} GiB available"
    if free < NEEDED_MEMORY:
        return Finding(
            "memory", "warning", said, f"a run wants up to {NEEDED_MEMORY / GIB:.0f} GiB: end other programs"
        )
    return Finding("memory", "ok", said)


def _cores() -> Finding:
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    threads = os.environ.get("OMP_NUM_THREADS", "as many as cores")
    said = f"{cores} cores, load {load:.1f}, threads for torch: {threads}"
    if load > cores / 2 and threads != "1":
        remedy = "on a busy machine threads wait for each other: wait, or set OMP_NUM_THREADS=1"
        return Finding("cores", "warning", said, remedy)
    return Finding("cores", "ok", said)


def _start(config: Config) -> Finding:
    from arise.engines.pretrained import cache_root, cached_folder

    starts = cache_root() / "starts"
    cached = len(list(starts.glob("*/config.json")))
    if not isinstance(config.model, SmallModel):
        local = Path(config.model.name).is_dir() or cached_folder(config.model.name).is_dir()
        if not local:
            remedy = f"arise models pull {config.model.name}, or name a folder"
            return Finding("model", "warning", f"{config.model.name} is not on this machine", remedy)
        return Finding("model", "ok", f"{config.model.name} is on this machine")
    if not cached:
        return Finding("warm start", "ok", f"none cached in {starts}: the first run makes one, in a few minutes")
    return Finding("warm start", "ok", f"{cached} cached in {starts}")


def _judge(config: Config) -> Iterator[Finding]:
    endpoint = getattr(config.judge, "endpoint", None)
    if endpoint is None:
        yield Finding("judge", "ok", f"{config.judge.kind}: no key and no network needed")
    elif not os.environ.get(endpoint.api_key_env):
        remedy = f"export {endpoint.api_key_env}=..., then: arise judge check"
        yield Finding("judge", "failure", f"{endpoint.api_key_env} is not set", remedy, Exit.JUDGE)
    else:
        yield Finding("judge", "ok", f"{endpoint.model}: {endpoint.api_key_env} is set; try it: arise judge check")
