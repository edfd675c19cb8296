"""Whatever is asked of the page's addresses, none answers with a server error."""

from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.core.result import Ok

from arise.report.dashboard.app import create_app
from arise.report.dashboard.catalogue import Catalogue
from arise.run.reader import RunReader

HOST = {"Host": "127.0.0.1"}


def fuzz(run: Path, cases: int) -> dict[int, int]:
    """At least so many cases, valid and invalid, over all operations; gives how often each status was answered."""
    with RunReader.open(run) as reader:
        row = reader.rollouts(limit=1)[0]
    # Every other case asks for what is there, so that pages are drawn too.
    there = {"run": "first", "rubric_id": "r001", "rollout_id": row.id, "task_id": row.task_id}
    schema = schemathesis.openapi.from_asgi("/openapi.json", create_app(Catalogue.of([run])), headers=HOST)
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    shape = settings(
        max_examples=max(2, cases * 7 // (10 * len(operations))),
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    answered: dict[int, int] = {}
    for operation, mode in product(operations, schemathesis.GenerationMode):

        @shape
        @given(operation.as_strategy(generation_mode=mode))
        def one(case: Any) -> None:
            if sum(answered.values()) % 2:
                case.path_parameters = {name: there[name] for name in case.path_parameters or {}}
            status = case.call(headers=HOST).status_code
            answered[status] = answered.get(status, 0) + 1
            assert status < 500, case.as_curl_command()

        with suppress(Unsatisfiable):  # an address without parameters has no invalid case
            one()
    return answered


@pytest.mark.timeout(900)
@pytest.mark.parametrize("cases", [160, pytest.param(2000, marks=pytest.mark.slow)])
def test_no_request_is_a_server_error(run: Path, cases: int) -> None:
    answered = fuzz(run, cases)
    assert sum(answered.values()) >= cases
    assert answered[200] > cases / 10
    assert set(answered) <= {200, 307, 404, 422}
