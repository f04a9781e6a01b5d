"""What a command left in a real overlay, read back."""

import os

import pytest

from tests.trial.conftest import Project
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.trial import Layer
from toolreeve.trial.harvest import Harvest
from toolreeve.trial.layer_reader import read_layer


def kinds(harvest: Harvest) -> dict[str, str]:
    return {each.path: str(each.kind) for each in harvest.changes}


def reasons(harvest: Harvest) -> dict[str, str]:
    return {each.path: each.reason for each in harvest.refused}


def test_a_command_that_reads_leaves_nothing(project: Project) -> None:
    harvest = project.harvest("cat a src/app.py; ls -lR; grep -r x .")

    assert (harvest.changes, harvest.refused, harvest.problem) == ((), (), "")


def test_every_kind_of_change_is_told(project: Project) -> None:
    harvest = project.harvest(
        """
        echo more >> a; touch b; chmod 700 src/app.py; rm src/old/x; ln b hard
        mkdir -p new/empty; echo n > new/n; ln -s ../a new/l; rm link; ln -s b link
        """
    )

    assert harvest.problem == ""
    assert kinds(harvest) == {
        "a": "modify",
        "hard": "link",
        "link": "modify",
        "new": "create",
        "new/empty": "create",
        "new/l": "create",
        "new/n": "create",
        "src/app.py": "mode",
        "src/old/x": "delete",
    }
    assert {each.path: each.inside for each in harvest.changes if each.inside} == dict.fromkeys(
        ("new/empty", "new/l", "new/n"), "new"
    )


def test_a_touched_file_counts_as_unchanged(project: Project) -> None:
    harvest = project.harvest("touch -d 2020-01-01 a; cp b c; mv c b")

    assert kinds(harvest) == {"a": "touch", "b": "touch"}
    assert harvest.kept == ()


def test_a_directory_that_is_removed_and_made_again_is_replaced_as_a_whole(project: Project) -> None:
    harvest = project.harvest("rm -r src/old; mkdir src/old; echo z > src/old/z; rm -r src/app.py; mkdir src/app.py")

    assert kinds(harvest) == {"src/app.py": "modify", "src/old": "modify", "src/old/z": "create"}
    (replaced,) = (each for each in harvest.changes if each.path == "src/old")
    assert (replaced.count, replaced.is_replacement) == (2, True)


def test_files_of_equal_size_are_compared_by_content_not_by_times(project: Project) -> None:
    harvest = project.harvest("cp -p a saved; printf A > a.new; tail -c +2 a >> a.new; touch -r a a.new; mv a.new a")

    assert kinds(harvest) == {"a": "modify", "saved": "create"}


def test_names_of_any_bytes_are_harvested(project: Project) -> None:
    harvest = project.harvest("printf 1 > $'new\\nline'; printf 2 > $'\\xff\\xfe'; printf 3 > ' '; printf 4 > '\\*'")

    assert sorted(kinds(harvest)) == sorted(["new\nline", os.fsdecode(b"\xff\xfe"), " ", "\\*"])
    assert len(harvest.digest()) == 64


def test_a_fifo_is_refused(project: Project) -> None:
    assert reasons(project.harvest("mkfifo fifo")) == {"fifo": "is a FIFO"}


def test_a_socket_is_refused(project: Project) -> None:
    harvest = project.harvest('python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\\"sock\\")"')

    assert reasons(harvest) == {"sock": "is a socket"}


def test_setuid_and_setgid_are_refused(project: Project) -> None:
    harvest = project.harvest("chmod u+s a; cp b c; chmod g+s c; mkdir d; chmod g+s d")

    assert sorted(reasons(harvest)) == ["a", "c"]
    assert kinds(harvest) == {"d": "create"}


@pytest.mark.parametrize(
    "name",
    [".vscode/tasks.json", ".git/hooks/pre-commit", ".envrc", "sub/.github/workflows/x.yml", ".toolreeve/x", ".env"],
)
def test_paths_that_the_host_obeys_are_refused(project: Project, name: str) -> None:
    harvest = project.harvest(f"mkdir -p $(dirname {name}); echo x > {name}")

    assert harvest.problem != ""


def test_a_bare_repository_is_refused(project: Project) -> None:
    harvest = project.harvest("mkdir -p r/objects; echo 'ref: refs/heads/x' > r/HEAD; echo > r/config")

    assert "git would treat the directory as a repository" in reasons(harvest).values()


def test_a_directory_with_a_guarded_file_is_not_deleted(project: Project) -> None:
    project.write("sub/.vscode/tasks.json", "{}")

    harvest = project.harvest("rm -r sub")

    assert list(reasons(harvest)) == ["sub"]
    assert "VS Code obeys it" in reasons(harvest)["sub"]


def test_attributes_that_select_a_program_are_refused_and_others_kept(project: Project) -> None:
    harmless = project.harvest("echo '*.png binary' > .gitattributes")
    harmful = project.harvest("echo '*.py filter=evil' > .gitattributes")

    assert harmless.problem == ""
    assert "filter=evil" in harmful.problem


@pytest.mark.parametrize(
    ("attribute", "where"),
    [
        ("trusted.overlay.redirect", "a"),
        ("trusted.overlay.metacopy", "a"),
        ("trusted.overlay.whiteout", "a"),
        ("user.overlay.opaque", "src"),
        ("trusted.overlay.overlay.opaque", "src"),
    ],
)
def test_notes_of_overlayfs_that_do_not_belong_there_are_refused(project: Project, attribute: str, where: str) -> None:
    layer = project.harvest("echo > a; echo > src/new").layer
    place = f"/proc/self/fd/{layer.upper}/{where}"
    os.setxattr(place, attribute, b"y")

    harvest = read_layer(layer, project.guards)

    assert list(reasons(harvest)) == [where]
    assert "overlayfs" in reasons(harvest)[where]


def test_a_whiteout_of_nothing_is_nothing_and_a_device_is_refused(project: Project) -> None:
    layer = project.harvest("true").layer
    os.mknod("ghost", 0o600 | 0o020000, os.makedev(0, 0), dir_fd=layer.upper)
    os.mknod("null", 0o600 | 0o020000, os.makedev(1, 3), dir_fd=layer.upper)

    harvest = read_layer(layer, project.guards)

    assert (kinds(harvest), reasons(harvest)) == ({}, {"null": "is a device"})


def test_files_of_other_owners_are_refused(project: Project) -> None:
    harvest = project.harvest("echo > mine; echo > theirs; chown 1234 theirs")

    assert kinds(harvest) == {"mine": "create"}
    assert reasons(harvest) == {"theirs": "belongs to another user (1234:0)"}


def test_the_user_of_the_sandbox_counts_as_the_owner_of_the_root(project: Project) -> None:
    layer = project.harvest("echo > mine; chown 2000000000:2000000000 mine").layer
    mapped = Layer(
        root=layer.root, upper=layer.upper, began_ns=layer.began_ns, uid=2000000000, gid=2000000000, notes=layer.notes
    )

    assert reasons(read_layer(mapped, project.guards)) == {}


def test_extended_attributes_of_the_user_are_a_change(project: Project) -> None:
    harvest = project.harvest("""python3 -c 'import os; os.setxattr("a", "user.note", b"y")'""")

    assert kinds(harvest) == {"a": "modify"}


def test_a_change_of_the_real_file_meanwhile_is_a_conflict(project: Project) -> None:
    real = project.root / "b"
    layer = project.harvest("echo mine >> b; rm -r src/old").layer
    real.write_text("theirs\n")
    (project.root / "src/old/x").write_text("theirs\n")

    harvest = read_layer(layer, project.guards)

    assert [each.path for each in harvest.conflicts] == ["b", "src/old"]
    assert harvest.problem == "'b' was changed meanwhile by another program"


def test_scratch_is_kept_apart_with_everything_below_it(project: Project) -> None:
    harvest = project.harvest(
        "mkdir -p pkg/__pycache__ .venv/bin; touch pkg/__pycache__/x.pyc pkg/m.py .venv/bin/python",
        lambda path: path.rpartition("/")[2] in ("__pycache__", ".venv"),
    )

    assert [each.path for each in harvest.kept] == ["pkg", "pkg/m.py"]
    assert [each.path for each in harvest.scratch] == [
        ".venv",
        ".venv/bin",
        ".venv/bin/python",
        "pkg/__pycache__",
        "pkg/__pycache__/x.pyc",
    ]


def test_too_many_changes_are_refused(project: Project) -> None:
    harvest = project.harvest("mkdir many; cd many; seq 30000 | xargs touch")

    assert harvest.problem == "'.': the trial changed too much: more than 20000 changes"


def test_too_deep_a_tree_is_refused(project: Project) -> None:
    deep = "import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')"

    harvest = project.harvest(f'python3 -c "{deep}"')

    assert harvest.problem == "'.': the trial changed too much: deeper than 100 directories"


def test_observed_effects_name_absolute_paths(project: Project) -> None:
    root = project.root

    effects = project.harvest("echo > a; rm b; rm -r src/old").effects()

    assert effects == (
        Effect(EffectKind.WRITE, f"{root}/a"),
        Effect(EffectKind.DELETE, f"{root}/b"),
        Effect(EffectKind.DELETE, f"{root}/src/old", Reach.BELOW),
    )
