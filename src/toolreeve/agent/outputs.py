"""Structured output: the fields of a signature in the last reply."""

import re
from typing import Any

from toolreeve.agent.signature import Signature, SignatureField
from toolreeve.core import json
from toolreeve.core.schema import Schema

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n?```", re.DOTALL)


class OutputReader:
    """One text field is the reply itself; everything else is asked for as a JSON object."""

    def __init__(self, signature: type[Signature]) -> None:
        self._fields = signature.outputs
        self._plain = next(iter(self._fields), "answer") if _is_plain(self._fields) else None
        self._adapters = {} if self._plain else {name: _adapter(field) for name, field in self._fields.items()}
        self.schema = {} if self._plain else _schema(self._fields, self._adapters)

    @property
    def instruction(self) -> str:
        """What the model is told about its last reply; empty for plain text."""
        if self._plain is not None:
            return ""
        document = json.pretty(self.schema)
        return f"When you are done, reply with one JSON object, and nothing else, that fits this schema:\n{document}"

    def read(self, text: str) -> dict[str, Any]:
        """Raises ValueError that says what is wrong, for the model to read."""
        if self._plain is not None:
            return {self._plain: text}
        found = _FENCED.search(text)
        try:
            value = json.loads((found[1] if found else text).strip())
        except ValueError as problem:
            raise ValueError(f"the reply is not JSON: {problem}") from None
        if not isinstance(value, dict):
            raise ValueError("the reply is not a JSON object")  # noqa: TRY004 - of the text, not of an argument
        problems = Schema(self.schema).problems(value, 10)
        if problems:
            raise ValueError("; ".join(map(str, problems)))
        return {name: self._convert(name, value) for name in self._fields}

    def _convert(self, name: str, value: dict[str, Any]) -> Any:
        if name not in value:
            return self._fields[name].default
        return self._adapters[name].validate_python(value[name])


def _is_plain(fields: dict[str, SignatureField]) -> bool:
    return len(fields) <= 1 and all(field.type is str for field in fields.values())


def _adapter(field: SignatureField) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(field.type)


def _schema(fields: dict[str, SignatureField], adapters: dict[str, Any]) -> dict[str, Any]:
    """Definitions of nested models are moved to the root, where their references point."""
    definitions: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    for name, field in fields.items():
        schema = adapters[name].json_schema()
        definitions |= schema.pop("$defs", {})
        described = {"description": field.description} if field.description else {}
        properties[name] = schema | described
    required = [name for name, field in fields.items() if field.is_required]
    document: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    return document | ({"$defs": definitions} if definitions else {})
