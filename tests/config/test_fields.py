from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from toolreeve.config.fields import json_schema, setting_fields
from toolreeve.config.layers import ALIASES
from toolreeve.core.documents import parse_toml
from toolreeve.core.errors import ConfigErrors
from toolreeve.core.schema import Schema


def test_every_setting_is_described_and_has_a_variable_of_its_own_unless_it_is_made_of_tables() -> None:
    variables = [setting.variable for setting in setting_fields().values() if not setting.has_tables]

    assert all(setting.field.description.endswith(".") for setting in setting_fields().values())
    assert len(set(variables)) == len(variables)
    assert None not in variables
    assert [setting.key for setting in setting_fields().values() if setting.has_tables] == [
        "principal.roles",
        "commands.env",
        "serve.tokens",
        "serve.oidc",
        "serve.webhooks",
        "workers.pools",
        "mcp_servers",
        "acp_agents",
        "a2a_agents",
    ]
    assert not set(variables) & set(ALIASES)


def test_the_schema_refuses_unknown_keys_and_accepts_every_default() -> None:
    schema = Schema(json_schema())
    schema.check()
    defaults: dict[str, Any] = {}
    for path, setting in setting_fields().items():
        *sections, name = path
        node = defaults
        for each in sections:
            node = node.setdefault(each, {})
        node[name] = setting.document["default"]

    assert schema.problems(defaults) == []
    assert [str(problem) for problem in schema.problems({"workspce": {}})] == [
        "/: unknown 'workspce' (did you mean 'workspace'?); known are " + ", ".join(json_schema()["properties"])
    ]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@given(
    st.dictionaries(st.sampled_from([path[0] for path in setting_fields()]) | st.text(max_size=5), _VALUES, max_size=3)
)
def test_whatever_a_file_holds_is_either_fit_or_complained_about(value: dict[str, Any]) -> None:
    from toolreeve.config.layers import read_file_layer
    from toolreeve.core.documents import Document

    problems: list[Exception] = []
    layer = read_file_layer(Document("/x/toolreeve.toml", value), complain=problems.append, environ={"HOME": "/x"})

    accepted = {path[0] for path in layer}
    assert problems or all(name in accepted or value[name] == {} for name in value)


def test_a_parsed_file_knows_the_lines_of_its_keys() -> None:
    assert parse_toml("[a]\nb = 1\n", "x").line(("a", "b")) == 2
    assert issubclass(ConfigErrors, Exception)
