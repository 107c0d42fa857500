"""Whatever the OpenAPI document allows, and what it does not, is never answered with a 500."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

schemathesis = pytest.importorskip("schemathesis", reason="the OpenAPI document is tried with schemathesis")
create_app = pytest.importorskip("askew.ui.web.app", reason="the explorer needs the extra web").create_app
# A few in every run of the tests; ASKEW_EXAMPLES=200 tries harder.
EXAMPLES = int(os.environ.get("ASKEW_EXAMPLES", "3"))
SCHEMA = schemathesis.openapi.from_dict(create_app().openapi())
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations()]
CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
]


def test_there_is_something_to_try():
    assert len(OPERATIONS) >= 9


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.label)
@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda one: one.value)
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_address_answers_as_described(operation, mode, live, data):
    if mode is schemathesis.GenerationMode.NEGATIVE and not (operation.query or operation.body):
        pytest.skip("it takes nothing, so nothing can be wrong")
    case = data.draw(operation.as_strategy(generation_mode=mode))
    case.call_and_validate(base_url=live, checks=CHECKS)
