"""The API keeps to its own description, whatever it is sent."""

from urllib.parse import quote

import pytest

from tiny_task import TEXTS

schemathesis = pytest.importorskip("schemathesis")


@pytest.fixture
def described(server, new_person):
    """The description of a server, and a session that has a result."""
    httpx = pytest.importorskip("httpx")
    with httpx.Client(base_url=server, timeout=20) as client:
        person = new_person(client, "\n".join(["text", *filter(None, TEXTS)]).encode())
        person.classify(columns=["text"])
        schema = schemathesis.openapi.from_dict(client.get("/api/openapi.json").json())
    return schema, person.info["id"]


def test_generated_requests_get_described_answers(described, server):
    from hypothesis import HealthCheck, given, settings

    schema, session_id = described
    checks = [
        schemathesis.checks.not_a_server_error,
        schemathesis.specs.openapi.checks.status_code_conformance,
        schemathesis.specs.openapi.checks.content_type_conformance,
        schemathesis.specs.openapi.checks.response_schema_conformance,
    ]
    seen, paths = {}, schema.raw_schema["paths"]
    for operation in (each.ok() for each in schema.get_all_operations()):
        if operation.method == "delete":
            continue

        @settings(
            max_examples=20,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def check(case):
            if "session_id" in case.path_parameters:
                case.path_parameters["session_id"] = session_id
            case.path_parameters = {k: quote(str(v), "") for k, v in case.path_parameters.items()}
            answer = case.call(base_url=server)
            case.validate_response(answer, checks=checks)
            seen.setdefault(case.path, set()).add(answer.status_code)

        check()
    assert 200 in seen["/api/sessions/{session_id}/view"]
    assert 200 in seen["/api/predict"]
    assert 200 in seen["/api/sessions/{session_id}/download/{what}"]
    assert len(seen) == sum(operations.keys() != {"delete"} for operations in paths.values())


def test_every_operation_describes_its_errors(described):
    schema, _ = described
    for path, operations in schema.raw_schema["paths"].items():
        for operation in operations.values():
            assert operation["description"], path
            for status, answer in operation["responses"].items():
                if status.startswith("4"):
                    shape = answer["content"]["application/json"]["schema"]
                    assert shape == {"$ref": "#/components/schemas/Problem"}
