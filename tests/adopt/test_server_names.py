from toolreeve.adopt.server_names import AssignedName, ServerNames

FS = {"command": "npx", "args": ["fs"]}


def test_a_server_that_is_there_already_is_not_added_again_whatever_it_is_called() -> None:
    names = ServerNames({"files": {**FS, "env": {}, "timeout": 5}})

    assert names.assign("fs", {**FS, "enabled": False}, "cursor") == AssignedName(name="files", new=False)
    assert names.added == {}


def test_another_server_of_the_same_name_is_renamed_after_its_client_and_then_counted() -> None:
    names = ServerNames({"fs": {"command": "mine"}})

    assigned = [names.assign("fs", {"command": str(number)}, "cursor").name for number in range(3)]

    assert assigned == ["fs-cursor", "fs-cursor-2", "fs-cursor-3"]
    assert names.entries["fs"] == {"command": "mine"}


def test_names_are_made_fit_and_stay_short() -> None:
    names = ServerNames({"x" * 48: {"command": "mine"}})

    assert names.assign("My Files", FS, "zed").name == "My-Files"
    assert len(names.assign("x" * 48, {"command": "other"}, "claude-desktop").name) <= 48


def test_names_never_run_out() -> None:
    names = ServerNames({})

    assigned = {names.assign("x" * 48, {"command": str(number)}, "claude-desktop").name for number in range(600)}

    assert len(assigned) == 600
    assert max(map(len, assigned)) <= 48
