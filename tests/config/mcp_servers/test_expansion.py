import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.config.mcp_servers.expansion import Expander, Surroundings, Unresolved

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


def expander(**environ: str) -> Expander:
    known = Surroundings(environ=environ, secret={"KEY": "s3cret"}.get, workspace="/project", home="/home/ada")
    return Expander(known)


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("plain $HOME $ {A} $$", "plain $HOME $ {A} $$"),
        ("${A}-${env:A}", "one-one"),
        ("${B:-two}", "two"),
        ("${A:-two}", "one"),
        ("${EMPTY}|${EMPTY:-filled}", "|filled"),
        ("${B:-}", ""),
        ("${B:-a:-b}", "a:-b"),
        ("${env:B:-two}", "two"),
        ("Bearer ${secret:KEY}", "Bearer s3cret"),
        ("${B:-${A}}!", "one!"),
        ("${B:-<${C:-two}>${A}}", "<two>one"),
        ("${A:-${NOT_SET}}", "one"),
        ("${B:-${secret:KEY}} ${B:-$5}", "s3cret $5"),
        ("${B:-${workspaceFolder}}", "/project"),
        ("${workspaceFolder}/x ${userHome}", "/project/x /home/ada"),
    ],
)
def test_references_are_expanded(text: str, resolved: str) -> None:
    assert expander(A="one", EMPTY="").expand(text) == resolved


@pytest.mark.parametrize(
    ("text", "problem", "fix"),
    [
        ("${B}", "the variable B is not set", r"write \${B:-default}"),
        ("${env:B}", "the variable B is not set", "export B"),
        ("${secret:B}", "the secret B is not set", 'add B = "…" to secrets.toml'),
        ("${input:token}", "asks for input", r"\${secret:token}"),
        ("${A", "is not closed", r"\${NAME}"),
        ("${B:-${A}", "is not closed", r"\${NAME}"),
        ("${B:-${C}}", "the variable C is not set", "export C"),
        ("${B:-${C:-${A}}}", "nests references too deep", r"\${NAME:-\${OTHER}}"),
        ("${A${B}}", "not a valid reference", r"\${NAME}"),
        ("${secret:${A}}", "not a valid reference", r"\${NAME}"),
        ("${}", "not a valid reference", r"\${NAME}"),
        ("${a b}", "not a valid reference", r"\${NAME}"),
        ("${command:pick}", "not a valid reference", r"\${NAME}"),
        ("${file:/etc/passwd}", "not a valid reference", r"\${NAME}"),
    ],
)
def test_a_reference_without_a_value_is_an_error_with_a_fix(text: str, problem: str, fix: str) -> None:
    with pytest.raises(Unresolved, match=problem) as caught:
        expander(A="one").expand(text)
    assert re.search(fix, caught.value.fix)


def test_the_secrets_that_were_handed_out_are_remembered() -> None:
    one = expander()

    one.expand("${secret:KEY} ${secret:KEY}")

    assert one.secrets == {"KEY": "s3cret"}
    assert "s3cret" not in repr(one)


@given(NAMES, st.text())
def test_an_expanded_value_is_never_expanded_again(name: str, value: str) -> None:
    assert expander(**{name: value}).expand(f"<${{{name}}}>") == f"<{value}>"


@given(st.text(alphabet="${}:-AB env", max_size=30))
def test_any_text_is_resolved_or_refused(text: str) -> None:
    try:
        resolved = expander(A="1").expand(text)
    except Unresolved:
        return
    assert "${" not in resolved


@given(st.text().filter(lambda text: "${" not in text))
def test_text_without_references_stays_as_it_is(text: str) -> None:
    assert expander().expand(text) == text
