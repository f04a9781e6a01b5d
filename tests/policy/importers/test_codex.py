from hypothesis import given
from hypothesis import strategies as st

from toolreeve.policy.importers.codex import import_codex


def test_prefixes_and_their_alternatives_become_rules() -> None:
    found = import_codex(
        'prefix_rule(pattern=["git", ["push", "fetch"]], decision="prompt", justification="remote")\n'
        'prefix_rule(pattern=["ls"])\n'
        'prefix_rule(pattern=["rm"], decision="forbidden", match=["rm x"])\n',
        root="/w",
    )

    assert found.left_out == []
    assert found.rules == [
        {"tool": "bash", "decision": "ask", "program": "git push", "reason": "remote"},
        {"tool": "bash", "decision": "ask", "program": "git fetch", "reason": "remote"},
        {"tool": "bash", "decision": "allow", "command": "ls *"},
        {"tool": "bash", "decision": "deny", "program": "rm"},
    ]


def test_nothing_is_evaluated() -> None:
    found = import_codex(
        "import os\n"
        "prefix_rule(pattern=[os.system('touch /tmp/hacked')])\n"
        "prefix_rule(pattern=names)\n"
        "prefix_rule(pattern=['a b', '*'])\n"
        "prefix_rule(pattern=[['a', 'b']] * 9)\n",
        root="/w",
    )

    assert found.rules == []
    assert len(found.left_out) == 5


@given(st.text(max_size=60))
def test_any_text_is_read_or_left_out(text: str) -> None:
    import_codex(text, root="/w")
    import_codex(f"prefix_rule(pattern=[{text!r}])", root="/w")
