"""A compose file that only describes the agent's own container is honoured; anything else in it is refused by name."""

from pathlib import Path

import pytest

from arise.tasks import read_task, refused
from arise.tasks.lint import lint
from arise.types import TaskSpec
from tests.task_folders import write_task
from tests.unit.tasks.test_formats import IMAGES

OF_HARBOR = """services:
  main:
    build:
      context: ${CONTEXT_DIR}
    image: ${MAIN_IMAGE_NAME}
    command: [ "sh", "-c", "sleep infinity" ]
    environment:
      - TEST_DIR=${TEST_DIR}
      - MODE=${MODE:-fast}
    volumes:
      - ${HOST_VERIFIER_LOGS_PATH}:${ENV_VERIFIER_LOGS_PATH}
      - ${HOST_AGENT_LOGS_PATH}:${ENV_AGENT_LOGS_PATH}
    deploy:
      resources:
        limits:
          cpus: ${CPUS}
          memory: ${MEMORY}
    network_mode: none
"""


def task(folder: Path, compose: str, name: str = "docker-compose.yaml", dockerfile: bool = True) -> TaskSpec:
    write_task(folder)
    (folder / "environment" / name).write_text(compose)
    if not dockerfile:
        (folder / "environment/Dockerfile").unlink()
    found = read_task(folder)
    assert isinstance(found, TaskSpec), found
    return found


def said(of: TaskSpec) -> list[str]:
    problems = refused(of, IMAGES)
    assert all('"compose" to tasks.ignore' in problem.remedy for problem in problems)
    return [problem.what for problem in problems]


def test_what_harbor_does_anyway_is_honoured(tmp_path: Path) -> None:
    found = task(tmp_path / "t", OF_HARBOR)
    assert said(found) == []
    place = found.environment
    assert (place.network, place.env) == ("none", {"TEST_DIR": "/tests", "MODE": "fast"})
    assert (place.dockerfile, place.context) == (tmp_path / "t/environment/Dockerfile", None)


def test_an_image_a_folder_and_variables_of_the_agents_container(tmp_path: Path) -> None:
    compose = "services: {main: {image: 'x/y:1', working_dir: /srv, environment: {A: 1}}}"
    found = task(tmp_path / "t", compose, dockerfile=False)
    assert (found.environment.image, found.environment.workdir, found.environment.env) == ("x/y:1", "/srv", {"A": "1"})
    assert said(found) == []


def test_a_build_may_see_the_whole_task(tmp_path: Path) -> None:
    compose = "services: {main: {build: {context: '${CONTEXT_DIR}/..', dockerfile: '${CONTEXT_DIR}/Dockerfile'}}}"
    folder = tmp_path / "t"
    found = task(folder, compose)
    assert said(found) == []
    assert (found.environment.context, found.environment.dockerfile) == (folder, folder / "environment/Dockerfile")
    (folder / "app").mkdir()
    (folder / "environment/Dockerfile").write_text("FROM debian\nRUN true\nCOPY app /app\n")
    assert lint(found) == []
    (folder / "environment/Dockerfile").write_text("FROM debian\nRUN true\nCOPY . /app\n")
    assert [problem.what for problem in lint(found)] == ["copies the whole task, its tests included"]


@pytest.mark.parametrize(
    ("compose", "what"),
    [
        ("services: {main: {}, db: {}, web: {}}", "starts other containers, which are not supported: db, web"),
        ("services: {main: {privileged: true}}", "services.main.privileged: is not supported"),
        ("services: {main: {build: {context: ., args: {A: b}}}}", "services.main.build.args: is not supported"),
        ("services: {main: {build: ../..}}", "services.main.build: lies outside of the task"),
        ("services: {main: {build: other}}", "services.main.build: there is no environment/other/Dockerfile"),
        ("services: {main: {network_mode: host}}", "services.main.network_mode: is not supported"),
        ("services: {main: {volumes: ['${HOME}/.ssh:/x']}}", "nothing of this machine is mounted: ${HOME}/.ssh:/x"),
        ("services: {main: {environment: ['KEY=${MY_KEY}']}}", "which no sandbox sees: KEY"),
        ("services: {main: {command: redis-server}}", "runs no program of its own: 'redis-server'"),
        ("services: {main: {deploy: {resources: {limits: {cpus: 2}}}}}", "services.main.deploy: the resources"),
        ("services: {main: {}}\nvolumes: {data: {}}", "volumes: is not supported"),
        ("services: [", "cannot be read as YAML"),
        ("- 1", "cannot be read as YAML"),
    ],
)
def test_anything_else_is_refused_by_name(compose: str, what: str, tmp_path: Path) -> None:
    (found,) = said(task(tmp_path / "t", compose))
    assert what in found


def test_a_file_that_harbor_does_not_read_is_one_of_the_task(tmp_path: Path) -> None:
    compose = "services: {web: {image: nginx}}"
    found = task(tmp_path / "t", compose, "docker-compose.yml")
    assert (found.compose_file, said(found)) == (None, [])
    assert "docker-compose.yml" not in found.environment.skip
    (what,) = said(task(tmp_path / "u", compose, "docker-compose.yml", dockerfile=False))
    assert what == "is not read under this name, which must be docker-compose.yaml"
