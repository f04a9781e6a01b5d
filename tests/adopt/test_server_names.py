from toolreeve.adopt.server_names import Names, ServerNames

FS = {"command": "npx", "args": ["fs"]}


def test_a_server_that_is_there_already_is_not_added_again_whatever_it_is_called() -> None:
    names = Names({"files": {**FS, "env": {}, "timeout": 5}})

    assert names.settle("fs", {**FS, "enabled": False}, "cursor") == ServerNames(name="files", new=False)
    assert names.added == {}


def test_another_server_of_the_same_name_is_renamed_after_its_client_and_then_counted() -> None:
    names = Names({"fs": {"command": "mine"}})

    settled = [names.settle("fs", {"command": str(number)}, "cursor").name for number in range(3)]

    assert settled == ["fs-cursor", "fs-cursor-2", "fs-cursor-3"]
    assert names.entries["fs"] == {"command": "mine"}


def test_names_are_made_fit_and_stay_short() -> None:
    names = Names({"x" * 48: {"command": "mine"}})

    assert names.settle("My Files", FS, "zed").name == "My-Files"
    assert len(names.settle("x" * 48, {"command": "other"}, "claude-desktop").name) <= 48


def test_names_never_run_out() -> None:
    names = Names({})

    settled = {names.settle("x" * 48, {"command": str(number)}, "claude-desktop").name for number in range(600)}

    assert len(settled) == 600
    assert max(map(len, settled)) <= 48
