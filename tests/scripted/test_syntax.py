from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.scripted.syntax import TemplateProblem, Text, parse
from toolreeve.scripted.template import Message


@pytest.mark.parametrize(
    ("template", "args", "text"),
    [
        ("{{a}}", {"a": "x"}, "x"),
        ("{{ a.b.0 }}", {"a": {"b": [7]}}, "7"),
        ("{{a|default(30)}}", {}, "30"),
        ("{{a|default('a|}} b')}}", {}, "a|}} b"),
        ("{{a|d(true)}}", {"a": None}, "true"),
        ("{{a|upper}}{{a|lower}}{{a|title}}{{a|capitalize}}", {"a": "aB c"}, "AB Cab cAb CAb c"),
        ("{{a|trim|length}}", {"a": " xy "}, "2"),
        ("{{a|join(', ')}}", {"a": ["x", 1, True]}, "x, 1, true"),
        ("{{a|first}}{{a|last}}", {"a": [1, 2, 3]}, "13"),
        ("{{a|sort|reverse|tojson}}", {"a": ["b", "a"]}, '["b","a"]'),
        ("{{a|unique|count}}", {"a": [1, 1, 2]}, "2"),
        ("{{a|keys|join('-')}}{{a|values|join}}", {"a": {"x": 1, "y": 2}}, "x-y12"),
        ("{{a|replace('o', '0')}}", {"a": "foo"}, "f00"),
        ("{{a|int}} {{b|float}} {{b|round}} {{c|abs}}", {"a": "3.7", "b": 2.5, "c": -1}, "3 2.5 2 1"),
        ("{{a|urlencode}} {{a|b64encode}} {{a|string}}", {"a": "a/b c"}, "a%2Fb%20c YS9iIGM= a/b c"),
        ("{{a|tojson}}", {"a": {"x": "é"}}, '{"x":"é"}'),
        ('{"a": {{{a}}}}', {"a": 1}, '{"a": {1}}'),
        ("{{'{{'}}.Names{{\"}}\"}}", {}, "{{.Names}}"),
        ("a{{! a remark, it's one }}b", {}, "ab"),
        ("{{#a}}{{b}}{{/a}}{{^a}}no{{/a}}", {"a": 0, "b": "yes"}, "yes"),
        ("{{#l}}{{#m}}{{.}}{{/m}};{{/l}}", {"l": [{"m": [1, 2]}, {"m": []}]}, "12;;"),
        ("{{x}}", {"x": "{{y}}", "y": "no"}, "{{y}}"),
    ],
)
def test_a_template_says(template: str, args: dict[str, Any], text: str) -> None:
    assert Message(template).render(args) == text


@pytest.mark.parametrize(
    ("template", "line", "says"),
    [
        ("a\n{{b", 2, "never closed"),
        ("{{#a}}\n\nx", 3, "section 'a' is never closed"),
        ("\n{{/a}}", 2, "closes nothing"),
        ("{{#a}}{{#b}}{{/a}}{{/b}}", 1, "was found instead of"),
        ("{{a|uper}}", 1, "did you mean 'upper'"),
        ("{{a|default(b)}}", 1, "must be literals"),
        ("{{a b}}", 1, "not understood"),
        ("{{}}", 1, "names no value"),
        ("{{.Names}}", 1, "not understood"),
        ("{{#a|upper}}{{/a}}", 1, "takes no filter"),
        ("{{'a' b}}", 1, "not one quoted text"),
    ],
)
def test_a_mistake_is_reported_with_its_line(template: str, line: int, says: str) -> None:
    with pytest.raises(TemplateProblem, match=says) as caught:
        parse(template)

    assert caught.value.line == line


@given(st.text(st.sampled_from(list("{}#^/!|.'\"ab( )\n,1-")), max_size=40))
def test_any_text_is_read_or_refused(template: str) -> None:
    try:
        nodes = parse(template)
    except TemplateProblem as problem:
        nodes, line = (), problem.line
    else:
        line = 1

    assert 1 <= line <= template.count("\n") + 1
    assert "{{" in template or "".join(node.text for node in nodes if isinstance(node, Text)) == template
