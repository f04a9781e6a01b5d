import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolreeve.core.git_config import MalformedGitConfig, active, active_attributes, inert_copy, parse, read_pointer

COMMANDS = [
    '[core]\n\tfsmonitor = "id > ESCAPED; false"',
    "[core]\n\tfsmonitor",
    "[core]\n\tfsmonitor = true",
    "[CORE]\nFsMonitor=x",
    "[core]sshCommand=x",
    "[remote]\npushDefault = ext::x",
    "[checkout]\ndefaultRemote = ext::x",
    '[remote "ext::x"]\nfetch = y',
    "[core]\nsshcommand = \\\nx",
    "[core]\npager=x",
    "[core]\neditor=x",
    "[core]\nhooksPath=x",
    "[core]\nattributesFile=x",
    "[core]\naskPass=x",
    "[core]\ngitProxy=x",
    "[core]\nworktree=/",
    "[core]\nalternateRefsCommand=x",
    "[include]\npath=x",
    '[includeIf "gitdir:**"]\npath=x',
    '[filter "x"]\nclean=x',
    '[filter "x"]\nprocess=x',
    '[diff "x"]\ntextconv=x',
    '[diff "x"]\ncommand=x',
    "[diff]\nexternal=x",
    '[merge "x"]\ndriver=x',
    "[alias]\nst=!x",
    "[alias]\nst=grep -Ox",
    '[remote "o"]\nurl=ext::sh -c id',
    '[remote "o"]\nurl=--upload-pack=x',
    '[remote "o"]\nuploadpack=x',
    '[remote "o"]\nvcs=x',
    '[branch "m"]\nremote=ext::id',
    '[url "ext::x"]\ninsteadOf=https://',
    "[credential]\nhelper=x",
    '[credential "https://x"]\nhelper=!x',
    "[gpg]\nprogram=x",
    '[gpg "ssh"]\ndefaultKeyCommand=x',
    "[sequence]\neditor=x",
    "[pager]\nlog=x",
    '[difftool "x"]\ncmd=x',
    '[mergetool "x"]\ncmd=x',
    '[guitool "x"]\ncmd=x',
    "[interactive]\ndiffFilter=x",
    "[uploadpack]\npackObjectsHook=x",
    '[submodule "s"]\nupdate=!x',
    '[trailer "x"]\ncommand=x',
    "[protocol]\nallow=always",
    "[man]\nviewer=x",
    "[web]\nbrowser=x",
    "[sendemail]\nsendmailCmd=x",
    "[fsck]\nskipList=x",
    "[core.x]\nfsmonitor=x",
    "\ufeff[core]\nfsmonitor=x",
    "[core]\r\n\tfsmonitor = x\r\n",
    "[user] name = a [core]\n[core] fsmonitor = x",
    '[a "b]"] x=1\n[core]\nfsmonitor=x',
    "[core] # [x]\nfsmonitor=x",
]


@pytest.mark.parametrize("text", COMMANDS)
def test_what_can_make_git_run_something_is_not_inert(text: str) -> None:
    assert active(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "core]\nx",
        "[core",
        '[core "x]\na=b',
        "x = 1",
        '[core]\nx = "a',
        "[core]\nx = \\q",
        "[core]\nx y",
        "[c]\na\0b",
        "[c]\ra=b",
    ],
)
def test_what_git_would_not_read_is_refused(text: str) -> None:
    with pytest.raises(MalformedGitConfig):
        parse(text.encode())


@pytest.mark.parametrize(
    "arguments",
    [
        ("init", "r"),
        ("init", "--bare", "r"),
        ("clone", "source", "r"),
        ("clone", "--bare", "source", "r"),
        ("clone", "--mirror", "source", "r"),
    ],
    ids=" ".join,
)
def test_what_git_itself_writes_is_inert(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    subprocess.run(["git", "init", "-q", "source"], cwd=tmp_path, check=True)
    subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True)
    config = next(path for path in (tmp_path / "r/.git/config", tmp_path / "r/config") if path.exists())

    assert active(config.read_bytes()) == ()


def _as_git_reads(path: Path) -> list[tuple[str, str | None]] | None:
    done = subprocess.run(["git", "config", "-f", path, "-z", "--list"], capture_output=True, check=False)
    if done.returncode:
        return None
    records = [record.split("\n", 1) for record in done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]]
    return [(record[0], record[1] if len(record) > 1 else None) for record in records]


_PIECES = st.sampled_from(
    [
        "[core]",
        '[a "b"]',
        '[A "B\\"c"]',
        "[x.Y]",
        "\n",
        " ",
        "\t",
        "key",
        "K-1",
        "=",
        " = ",
        '"',
        "\\",
        "\\\n",
        "\\n",
        "#",
        ";",
        "v",
        "v w",
        "]",
        "\r\n",
        "é",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_PIECES, max_size=14).map("".join))
def test_a_file_is_read_as_git_reads_it(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("config") / "config"
    path.write_bytes(text.encode())
    theirs = _as_git_reads(path)
    try:
        ours = [(setting.name, setting.value) for setting in parse(text.encode())]
    except MalformedGitConfig:
        return  # more is refused than git refuses; nothing is taken that git reads otherwise

    assert theirs is not None
    assert [(name, _spaces(value)) for name, value in ours] == [(name, _spaces(value)) for name, value in theirs]


def _spaces(value: str | None) -> str | None:
    """Versions of git differ in how they keep the white space inside a value."""
    return None if value is None else " ".join(value.split())


def test_an_inert_copy_keeps_what_git_needs_and_drops_the_rest(tmp_path: Path) -> None:
    text = b'[core]\n\tbare = false\n\tfsmonitor = x\n[remote "a\\"b"]\n\turl = "c d"\n[alias]\n\tx = !y\n'
    path = tmp_path / "config"
    path.write_bytes(inert_copy(text))

    assert _as_git_reads(path) == [("core.bare", "false"), ('remote.a"b.url', "c d")]


def test_attributes_that_choose_a_program_are_found() -> None:
    assert (
        active_attributes(b"* text=auto\n*.py diff=python\n*.bin filter=lfs diff=lfs merge=lfs -text\n*.x -diff") == ()
    )
    assert active_attributes(b"*.x filter=evil\n[attr]m diff=pdf merge=custom\n*.y filter=lfs\x0bx") == (
        "filter=evil",
        "diff=pdf",
        "merge=custom",
        "filter=lfs\x0bx",
    )


def test_a_pointer_has_one_line() -> None:
    assert read_pointer(b"gitdir: ../.git/worktrees/w\n") == "../.git/worktrees/w"
    assert read_pointer(b"gitdir: a\nb") is None
