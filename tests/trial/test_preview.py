"""What a person sees before they keep the changes of a trial."""

import subprocess

import pytest

from tests.trial.conftest import Project
from toolreeve.trial.preview import MAX_CHARACTERS, preview


def test_changes_are_listed_and_their_text_is_shown(project: Project) -> None:
    shown = preview([project.harvest("echo two >> a; rm b; rm -r src/old; echo x > new; chmod 600 src/app.py")])

    assert shown.split("\n") == [
        "M a",
        "D b",
        "A new",
        "M src/app.py (now -rw-------)",
        "D src/old (with 2 entries)",
        "--- a",
        "+++ a",
        "@@ -1 +1,2 @@",
        " a",
        "+two",
        "--- b",
        "+++ b",
        "@@ -1 +0,0 @@",
        "-b",
        "--- (nothing)",
        "+++ new",
        "@@ -0,0 +1 @@",
        "+x",
    ]


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("echo > conftest.py", "! A conftest.py (Python runs it)"),
        ("mkdir lib; echo import os > lib/x.pth", "! A lib/x.pth (Python runs it)"),
        ("echo > run.sh; chmod +x run.sh", "! A run.sh (can be executed)"),
        ("chmod +x a", "! M a (can be executed, now -rwxr-xr-x)"),
        ("ln -s /etc/passwd out", "! A out (leads out of the workspace, → /etc/passwd)"),
        ("ln -s ../../x src/out", "! A src/out (leads out of the workspace, → ../../x)"),
        ('echo \'{"scripts": {"test": "evil"}}\' > package.json', "! A package.json (npm runs its scripts)"),
        ("echo all: > Makefile", "! A Makefile (builds run it)"),
        ("mkdir -p tools/hooks; echo > tools/hooks/x", "! A tools/hooks/x (hooks, editors or CI run it)"),
    ],
)
def test_what_could_run_by_itself_comes_first_and_says_why(project: Project, script: str, line: str) -> None:
    shown = preview([project.harvest(f"echo >> b; {script}")])

    assert shown.split("\n")[0] == line


@pytest.mark.parametrize("make", ["mkdir src", "echo > src", "ln -s b src", "ln a src"])
def test_a_directory_that_makes_way_for_anything_is_told(project: Project, make: str) -> None:
    shown = preview([project.harvest(f"rm -r src; {make}")])

    (line,) = [each for each in shown.split("\n") if each.startswith("M src")]
    assert "replaces 4 entries" in line


def test_a_package_without_new_scripts_is_no_danger(project: Project) -> None:
    project.write("package.json", '{"scripts": {"test": "x"}, "version": "1"}\n')

    shown = preview([project.harvest("sed -i s/1/2/ package.json")])

    assert shown.split("\n")[0] == "M package.json"


def test_control_characters_are_visible_in_names_and_content(project: Project) -> None:
    shown = preview([project.harvest("printf '\\033[2Jx\\u202e\\n' > $'a\\n! A fake\\033'")])

    assert shown.split("\n")[0] == "A a⏎! A fake‹U+001B›"
    assert "+‹U+001B›[2Jx‹U+202E›" in shown
    assert "\033" not in shown


def test_binaries_are_named_as_such(project: Project) -> None:
    shown = preview([project.harvest("printf 'a\\0b' > data; head -c 300000 /dev/zero | tr '\\0' x > large")])

    assert "(binary or too large: data, 0 → 3 bytes)" in shown
    assert "(binary or too large: large, 0 → 300000 bytes)" in shown


def test_it_is_bounded_and_says_what_is_left_out(project: Project) -> None:
    shown = preview([project.harvest("for i in $(seq 200); do echo $i > f$i; done; yes xyz | head -40000 > a")])

    assert "… and 101 more changes" in shown
    assert "more changes is not shown)" in shown
    assert len(shown) < 3 * MAX_CHARACTERS


def test_discarded_scratch_is_counted(project: Project) -> None:
    harvest = project.harvest("mkdir c; touch c/1 c/2", lambda path: path.startswith("c"))

    assert preview([harvest]) == "(discarded: 2 files of caches or ignored by git)"


def test_records_of_a_repository_are_counted_and_its_branches_shown(project: Project) -> None:
    project.harvest("true")
    subprocess.run(["git", "init", "-qb", "main"], cwd=project.root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=project.root, check=True)

    shown = preview([project.harvest("git -c user.name=a -c user.email=a@b commit -qm x")])

    assert shown.split("\n")[0] == "A .git/refs/heads/main"
    assert "changes of objects, logs and the index of the repository)" in shown.split("\n")[1]
