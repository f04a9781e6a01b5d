"""The OpenAPI 3.1 document, generated from the declared endpoints."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode
from starlette.responses import Response

from toolreeve.serve.api.endpoint import SSE, Endpoint, Query
from toolreeve.serve.api.problems import MEDIA_TYPE, ProblemDetails
from toolreeve.serve.api.router import CSRF_HEADER, PREFIX

_REF = "#/components/schemas/{model}"
_DOCUMENT: Mapping[str, Any] = {
    "openapi": "3.1.0",
    "info": {
        "title": "Toolreeve",
        "version": "1",
        "description": "The tool runtime for AI agents: every call is decided, approved, confined and recorded.",
    },
    "security": [{"bearer": []}, {"cookie": []}, {}],
}
_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "toolreeve_console_8733",
        "description": "A browser's session, by the server's port (with TLS: __Host-toolreeve_console); "
        f"changes need the header {CSRF_HEADER} as well.",
    },
}


def new_document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    schemas = Schemas()
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        path = re.sub(r":\w+}", "}", PREFIX + each.path)
        paths.setdefault(path, {})[each.method.lower()] = _operation(each, schemas)
    components = {"schemas": dict(sorted(schemas.found.items())), "securitySchemes": _SECURITY}
    return {**_DOCUMENT, "paths": dict(sorted(paths.items())), "components": components}


class Schemas:
    """The schemas of models and types, each defined once under `components`."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def of(self, kind: Any, mode: JsonSchemaMode = "serialization") -> dict[str, Any]:
        schema = TypeAdapter(kind).json_schema(ref_template=_REF, mode=mode)
        self.found.update(schema.pop("$defs", {}))
        name = getattr(kind, "__name__", "")
        if schema.get("type") != "object" or not name or name in ("dict", "list"):
            return schema
        self.found[name] = schema
        return {"$ref": _REF.format(model=name)}


def _operation(endpoint: Endpoint, schemas: Schemas) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "description": f"Needs the scope `{endpoint.scope.value}`.",
        "parameters": [*_variables(endpoint, schemas), *_parameters(endpoint.query, schemas)],
        "responses": _responses(endpoint, schemas),
    }
    if endpoint.body is not None:
        content = {"application/json": {"schema": schemas.of(endpoint.body, "validation")}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _variables(endpoint: Endpoint, schemas: Schemas) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {**schemas.of(kind), "minLength": 1}}
        for name, kind in endpoint.variables.items()
    ]


def _parameters(query: type[Query] | None, schemas: Schemas) -> list[dict[str, Any]]:
    if query is None:
        return []
    schema = TypeAdapter(query).json_schema(ref_template=_REF, mode="validation")
    schemas.found.update(schema.pop("$defs", {}))
    required = schema.get("required", ())
    return [
        {
            "name": name,
            "in": "query",
            "required": name in required,
            "schema": _present(each),
            **({"description": each["description"]} if "description" in each else {}),
        }
        for name, each in schema.get("properties", {}).items()
    ]


def _present(schema: dict[str, Any]) -> dict[str, Any]:
    """A query cannot hold null: a parameter is given or left out."""
    kept = {key: value for key, value in schema.items() if key not in ("default", "title", "description")}
    options = [each for each in kept.pop("anyOf", ()) if each != {"type": "null"}]
    if len(options) == 1:
        kept.update(options[0])
    elif options:
        kept["anyOf"] = options
    return kept


def _responses(endpoint: Endpoint, schemas: Schemas) -> dict[str, Any]:
    problem = {"description": "The error", "content": {MEDIA_TYPE: {"schema": schemas.of(ProblemDetails)}}}
    responses: dict[str, Any] = {}
    if endpoint.produces:
        content = {each: {"schema": {"type": "string"}} for each in endpoint.produces}
        responses["200"] = {"description": "The stream", "content": content}
    elif endpoint.result is None or endpoint.result is type(None):
        responses["204"] = {"description": "Done"}
    elif endpoint.result is not Response:
        content = {"application/json": {"schema": schemas.of(endpoint.result)}}
        if endpoint.streams:
            content[SSE] = {"schema": {"type": "string"}}
        responses["200"] = {"description": "The result", "content": content}
    for status, kind in endpoint.statuses.items():
        responses[str(status)] = {
            "description": "The result",
            "content": {"application/json": {"schema": schemas.of(kind)}},
        }
    return {**responses, "4XX": problem, "5XX": problem}
