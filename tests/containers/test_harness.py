"""An unmodified harness works in a task's own image, which holds neither Node.js nor Python."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from arise.compose.harnesses import equipment_of, harness_of, program_in
from arise.config.agent import HarnessAgentConfig
from arise.endpoint.serving import on_socket
from arise.harnesses.install import status
from arise.harnesses.launch import Launcher
from arise.harnesses.rehearse import rehearse
from arise.sandbox.choose import ChosenPool
from arise.types import Place
from tests.containers import base

COMMANDS = [
    "cat /etc/made; command -v node python3 || echo bare",
    "env | grep '^LD_\\|^PYTHON' || echo clean; id -un",
    "cat > answer.txt <<'END'\ntwo\nlines\nEND",
]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("pi", "overlay"),
        pytest.param("mini-swe-agent", "overlay", marks=pytest.mark.slow),
        pytest.param("pi", "podman", marks=pytest.mark.slow),
        ("mini-swe-agent", "podman"),
        pytest.param("pi", "docker", marks=pytest.mark.slow),
        pytest.param("mini-swe-agent", "docker", marks=pytest.mark.slow),
    ],
    indirect=["kind"],
)
def test_a_harness_works_in_an_image_that_has_nothing_of_it(name: str, kind: str, tmp_path: Path) -> None:
    if not status(name).usable:
        pytest.skip(f"arise harness install {name}")
    made = "RUN echo made by its author > /etc/made && useradd worker && mkdir /work && chown worker /work"
    (tmp_path / "Dockerfile").write_text(f"FROM {base.NAME}\n{made}\nUSER worker\nWORKDIR /work\n")
    said: list[str] = []

    def worker(output: str | None) -> str | None:
        said.append(output or "")
        return next(iter(COMMANDS[len(said) - 1 : len(said)]), None)

    async def body() -> str:
        chosen = HarnessAgentConfig(kind=name)  # type: ignore[arg-type]
        spec = harness_of(chosen)
        async with on_socket() as endpoint:
            equipment = equipment_of(chosen, spec, str(endpoint.socket.parent))
            launcher = Launcher(spec, endpoint, partial(program_in, chosen, spec), 240)
            async with ChosenPool(kind, 1, 1, network="none", equipment=equipment) as pool:  # type: ignore[arg-type]
                box = await pool.open(Place(dockerfile=tmp_path / "Dockerfile", storage_mb=64))
                try:
                    await rehearse(launcher, box, "Write two lines.", worker, 8192, 256)
                    await box.get("/work/answer.txt", tmp_path / "answer.txt")
                finally:
                    await box.close()
        return (tmp_path / "answer.txt").read_text()

    assert asyncio.run(body()) == "two\nlines\n"
    assert "made by its author" in said[1]
    assert "bare" in said[1]
    assert "clean" in said[2], said[2]
    assert "worker" in said[2]
