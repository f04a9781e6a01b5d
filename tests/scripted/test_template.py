import pytest
from bench.attacks.templates import CONTEXTS
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from tests.scripted.scripts import run
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.scripted import template
from toolreeve.scripted.syntax import TemplateProblem
from toolreeve.scripted.template import MAX_SIZE, Message, ValueRules, compile_script

TELL = 'tell() { printf "%s\\0" "$@"; }\n'
HOSTILE = "$(id) `id` '\"; id; \\ \n x\t*~ {{y}} ${x} é !! #"
DASH = ValueRules(allow_dash=True)


def printed(script: str, value: str) -> list[str]:
    """What reaches a program, for any way of quoting."""
    args = {"value": value, "pairs": {"k": value}, "list": [value]}
    return run(TELL + script, args, value=DASH, pairs=DASH, list=DASH).split("\0")[:-1]


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_hostile_value_is_text_in_every_way_of_quoting(context: str) -> None:
    found = printed(CONTEXTS[context], HOSTILE)

    assert any(HOSTILE in each for each in found)
    assert not any("uid=" in each.replace(HOSTILE, "") for each in found)


_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
_SHELL = st.text(st.sampled_from(list("$`'\"\\(){}[]<>|&;*?~!#%=- \n\tEOFab")), max_size=30)


@settings(max_examples=60, deadline=None)
@given(value=_TEXT | _SHELL)
def test_any_value_arrives_byte_for_byte(value: str) -> None:
    plain = ("bare", "double", "single", "heredoc", "substitution", "assignment", "loop", "here string")
    script = "\n".join(CONTEXTS[name] for name in plain)

    assert printed(script, value) == [value] * len(plain)


_PARTS = st.sampled_from(
    ["{{v}}", '"{{v}}"', "'{{v}}'", "$'{{v}}'", '"a{{v}}b"', "x", '"y z"', "{{#s}} {{v}} {{/s}}", '"{{#s}}q{{/s}}"']
)


@settings(max_examples=40, deadline=None)
@given(parts=st.lists(_PARTS, min_size=1, max_size=6), glued=st.booleans(), value=_SHELL, on=st.booleans())
def test_in_any_mixture_of_quoting_a_value_goes_where_a_harmless_word_goes(
    parts: list[str], glued: bool, value: str, on: bool
) -> None:
    script = f"{TELL}tell {('' if glued else ' ').join(parts)}"
    try:
        harmless = run(script, {"v": "Q7Z", "s": on}, v=DASH, s=DASH)
    except TemplateProblem:
        reject()  # too many of these fail the test

    assert run(script, {"v": value, "s": on}, v=DASH, s=DASH) == harmless.replace("Q7Z", value)


def test_sections_stand_once_for_each_entry_and_not_at_all_for_nothing() -> None:
    script = 'printf "<%s>" x {{#headers}} -H "{{key}}: {{value}}" {{/headers}} {{^headers}} none {{/headers}}'

    assert run(script, {"headers": {"a": "1", "b": "$(id)"}}) == "<x><-H><a: 1><-H><b: $(id)>"
    assert run(script, {"headers": {}}) == run(script, {}) == "<x><none>"


def test_a_section_that_names_its_own_value_means_if_it_is_set() -> None:
    script = "printf '<%s>' x {{#data}} -d '{{data|tojson}}' {{/data}}"

    assert run(script, {"data": {"n": "O'Hara"}}) == '<x><-d><{"n":"O\'Hara"}>'
    assert run(script, {"data": [1, 2]}) == "<x><-d><[1,2]>"
    assert run(script, {}) == "<x>"


def test_lists_of_objects_bring_their_fields_into_the_section() -> None:
    script = "printf '<%s>' {{#users}} {{name}}:{{age}} {{/users}}"

    assert run(script, {"users": [{"name": "a b", "age": 3}, {"name": "c", "age": 4}]}) == "<a b:3><c:4>"


def test_numbers_and_booleans_are_written_as_json_writes_them() -> None:
    assert (
        run("printf '<%s>' {{a}} {{b}} {{c}} {{d}}", {"a": 3, "b": 0.5, "c": True, "d": [1]}) == "<3><0.5><true><[1]>"
    )


@pytest.mark.parametrize(
    "script", ["cat {{x}}", "cat {{x}}{{y}}", "cat ''{{x}}", "cat $EMPTY{{x}}", "cat a;cat {{x}}/b"]
)
def test_a_leading_dash_is_refused_where_it_would_begin_an_option(script: str) -> None:
    with pytest.raises(ToolError, match="may not begin with '-'") as caught:
        compile_script(script, {}).render({"x": "-n", "y": "a"})

    assert caught.value.code is ErrorCode.INVALID_PARAMS


@pytest.mark.parametrize("script", ["cat a{{x}}", 'cat "{{x}}"', "cat --name={{x}}"])
def test_a_leading_dash_is_a_value_like_any_other_elsewhere(script: str) -> None:
    assert compile_script(script, {}).render({"x": "-n"}).values == ["-n"]


def test_an_author_may_allow_the_dash() -> None:
    assert run("printf %s {{x}}", {"x": "-n"}, x=DASH) == "-n"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({}, "is missing and has no default"),
        ({"x": None}, "is missing"),
        ({"x": "a\0b"}, "NUL"),
        ({"x": "x" * (MAX_SIZE + 1)}, "pass a file"),
    ],
)
def test_what_cannot_be_filled_in_is_an_invalid_argument(args: dict[str, object], says: str) -> None:
    with pytest.raises(ToolError, match=says) as caught:
        compile_script("echo {{x}}", {}).render(args)

    assert caught.value.code is ErrorCode.INVALID_PARAMS


def test_a_long_list_of_long_values_is_bounded() -> None:
    script = compile_script("echo {{#l}} {{big}} {{/l}}", {})

    with pytest.raises(ToolError, match="pass a file"):
        script.render({"l": ["x"] * 1000, "big": "y" * 100_000})


def test_items_cannot_smuggle_a_value_under_the_name_of_a_parameter_with_choices() -> None:
    script = compile_script("{{#items}} {{method}} a; {{/items}}", {"method": ValueRules(choices=("echo", "true"))})

    assert script.render({"method": "echo", "items": [{}]}).values == ["echo"]
    with pytest.raises(ToolError, match="not one of the allowed"):
        script.render({"method": "echo", "items": [{"method": "id"}]})


def test_items_cannot_smuggle_a_text_under_the_name_of_a_number() -> None:
    script = compile_script("{{#items}} x={{n}}; echo $((x + 1)); {{/items}}", {"n": ValueRules(numeric=True)})

    with pytest.raises(ToolError, match="not a number"):
        script.render({"n": 1, "items": [{"n": "a[$(id)]"}]})


def test_a_comment_holds_no_value() -> None:
    assert run("# {{x}}\necho done", {"x": "\nid"}) == "done\n"


def test_values_are_not_passed_on_to_programs() -> None:
    printed = run("printf %s {{x}} >/dev/null; env; ls /proc/self/fd", {"x": "hidden-value"})

    assert "hidden-value" not in printed
    assert "TOOLREEVE" not in printed


def test_the_name_of_the_array_is_the_runtimes_own() -> None:
    with pytest.raises(TemplateProblem, match="reserved for the runtime"):
        compile_script("echo ok\necho ${__toolreeve[1]}", {})


def test_a_script_is_shown_with_its_values_typed_in_safely() -> None:
    script = compile_script("echo {{x}} \"{{x}}\" '{{x}}'", {})

    assert script.show({"x": "a'$b"}) == "echo 'a'\"'\"'$b' \"a'\\$b\" 'a'\"'\"'$b'"


def test_a_message_takes_values_as_they_are() -> None:
    assert Message("no {{path}} ({{n|default(3)}})").render({"path": "a'b"}) == "no a'b (3)"


def test_a_script_has_a_bound_for_its_values_and_its_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "MAX_VALUES", 4)
    monkeypatch.setattr(template, "MAX_SECTIONS", 4)

    compile_script("echo " + "{{n}} " * 4, {})
    with pytest.raises(TemplateProblem, match="too many values"):
        compile_script("echo " + "{{n}} " * 5, {})
    compile_script("echo " + "{{#n}}a{{/n}}" * 3, {})
    with pytest.raises(TemplateProblem, match="too many sections"):
        compile_script("echo " + "{{#n}}a{{/n}}" * 4, {})


def test_values_of_the_largest_size_are_rendered() -> None:
    script = compile_script("echo {{x}}{{y}}", {})
    half = "x" * (MAX_SIZE // 2)

    assert script.render({"x": half, "y": half}).values == [half, half]
    with pytest.raises(ToolError, match="more than 32 MB"):
        script.render({"x": half, "y": half + "x"})


def test_a_section_is_checked_left_out_once_and_twice() -> None:
    """What is harmless alone may be code beside itself, or beside nothing."""
    with pytest.raises(TemplateProblem):
        compile_script("{{#a}}echo {{/a}}{{x}}", {})
    with pytest.raises(TemplateProblem):
        compile_script("bash {{#a}}-c {{/a}}'echo' {{x}}; {{#a}}bash -c {{/a}}\"{{x}}\"", {})
    compile_script("echo {{#a}}-n {{/a}}{{x}}", {})


def test_a_script_without_sections_has_one_text_and_one_with_sections_has_more() -> None:
    fixed = compile_script("echo {{x}}", {})
    varied = compile_script("echo {{x}}{{#a}} more{{/a}}", {})

    assert fixed.render({"x": "1"}).script == fixed.render({"x": "2"}).script
    assert varied.render({"x": "1", "a": True}).script != varied.render({"x": "1"}).script


@pytest.mark.parametrize(("source", "line"), [("\0", 1), ("\n\0", 2), ("echo a\n\necho \0", 3)])
def test_a_name_of_the_runtime_is_refused_with_its_line(source: str, line: int) -> None:
    with pytest.raises(TemplateProblem, match="is reserved for the runtime") as refused:
        compile_script(source, {})

    assert refused.value.line == line
