"""Structured results match the schema that clients get, failures included."""

from typing import Any

import jsonschema_rs
import pytest

from toolreeve.formats.result_schema import result_schema

PLAIN = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
STRICT = {**PLAIN, "additionalProperties": False}
REFERRING = {
    "type": "object",
    "properties": {"n": {"$ref": "#/$defs/number"}},
    "required": ["n"],
    "$defs": {"number": {"type": "integer"}},
}
ITS_OWN_ERRORS = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
FAILED = {"error": {"code": "E_DENIED", "message": "no"}, "stdout": "before"}


@pytest.mark.parametrize("promised", [PLAIN, STRICT, REFERRING, {"type": "object"}, ITS_OWN_ERRORS])
def test_a_failure_fits(promised: dict[str, Any]) -> None:
    assert jsonschema_rs.is_valid(result_schema(promised), FAILED)


@pytest.mark.parametrize("promised", [PLAIN, STRICT, REFERRING])
def test_what_is_promised_fits_and_anything_else_does_not(promised: dict[str, Any]) -> None:
    schema = result_schema(promised)

    assert jsonschema_rs.is_valid(schema, {"n": 1})
    assert not jsonschema_rs.is_valid(schema, {"n": "one"})
    assert not jsonschema_rs.is_valid(schema, {})
    assert schema["type"] == "object"
