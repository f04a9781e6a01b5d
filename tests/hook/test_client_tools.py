"""Tools of agent clients as calls of ours."""

from toolreeve.hook.client_tools import translate


def test_no_second_key_and_no_arguments_apart_hide_a_command() -> None:
    both = translate("exec_command", {"command": "ls", "cmd": "rm -rf x"}, cwd="/work")
    apart = translate("bash", {"command": "find", "args": [".", "-delete"]}, cwd="/work")
    text = translate("bash", {"command": ["find"], "args": "-delete"}, cwd="/work")

    assert [each.args["command"] for each in both] == ["ls", "rm -rf x"]
    assert [each.args["command"] for each in apart] == ["find . -delete"]
    assert [each.args["command"] for each in text] == ["find -delete"]
