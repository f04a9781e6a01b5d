"""Strict YAML and TOML that remember their lines."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.documents import dotted, parse_toml, parse_yaml, read_document
from toolreeve.core.errors import ConfigError

YAML = """\
rules:
  - tool: read_file
    when:
      path: {under: src}
  - tool: "*"
"""
TOML = """\
top = 1

[policy]
mode = "strict"  # tighter

[[rules]]
tool = "a"

[[rules]]
tool.name = "b"
"""


def test_yaml_values_know_their_lines() -> None:
    document = parse_yaml(YAML, "policy.yaml")

    assert document.value == {"rules": [{"tool": "read_file", "when": {"path": {"under": "src"}}}, {"tool": "*"}]}
    assert document.line(("rules", 0, "when", "path")) == 4
    assert document.line(("rules", 1, "tool")) == 5
    assert document.line(("rules", 1, "missing")) == 5


def test_toml_values_know_their_lines() -> None:
    document = parse_toml(TOML, "toolreeve.toml")

    assert document.line(("top",)) == 1
    assert document.line(("policy", "mode")) == 4
    assert document.line(("rules", 1, "tool", "name")) == 10
    assert document.line(("policy", "unknown")) == 3


def test_an_error_names_file_line_key_and_fix() -> None:
    error = parse_yaml(YAML, "policy.yaml").error("is not known", path=("rules", 1, "tool"), fix="remove it")

    assert str(error) == "policy.yaml:5: rules[1].tool: is not known\n  fix: remove it"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", r"f.yaml:3: has the key 'a' twice \(first on line 1\)"),
        ("a: !!python/object:os.system x\n", "f.yaml:1: uses the tag 'python/object:os.system'"),
        ("a: !secret x\n", "uses the tag"),
        ("a: [1, 2\n", r"f.yaml:\d: is not valid YAML"),
        ("base: &b {x: 1}\nmore:\n  <<: *b\n", "f.yaml:3: uses a merge key"),
    ],
)
def test_ambiguous_yaml_is_refused(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_yaml(text, "f.yaml")


def test_yaml_that_grows_by_references_to_itself_is_refused() -> None:
    text = "a: &a [*a]\n"

    with pytest.raises(ConfigError):
        parse_yaml(text, "f.yaml")


def test_a_bomb_of_aliases_does_not_explode() -> None:
    levels = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 9))

    with pytest.raises(ConfigError, match="alias"):
        parse_yaml(f"l0: &l0 [x]\n{levels}\n", "bomb.yaml")


def test_bad_toml_says_where() -> None:
    with pytest.raises(ConfigError, match=r"f.toml:2: is not valid TOML"):
        parse_toml("a = 1\nb = \n", "f.toml")


def test_a_file_that_is_not_utf8_says_where(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_bytes(b"a: 1\nb: \xff\n")

    with pytest.raises(ConfigError, match=r"policy.yaml:2: is not UTF-8 text"):
        read_document(path)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_document(tmp_path / "none.toml")


def test_dotted_reads_like_a_path() -> None:
    assert dotted(("rules", 2, "when", "path")) == "rules[2].when.path"


@given(st.text())
def test_any_text_parses_or_is_refused_with_a_config_error(text: str) -> None:
    for parse in (parse_yaml, parse_toml):
        try:
            parse(text, "any")
        except ConfigError:
            continue


def test_a_file_of_brackets_ends_the_parse_and_not_the_process() -> None:
    with pytest.raises(ConfigError, match="nested deeper than 32 levels"):
        parse_yaml("[" * 500_000, "x.yaml")
    with pytest.raises(ConfigError, match="nested too deeply"):
        parse_toml("a = " + "[" * 500_000, "x.toml")
