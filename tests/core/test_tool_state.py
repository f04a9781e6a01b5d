import pytest

from toolreeve.core.tool_state import find_programs

NAMING = {
    "git-rebase-todo": (b"pick abc x\nexec make\n", b"x make", b"exec"),
    "todo": (b"  exec make",),
    "strategy": (b"x/../evil\n", b"evil", b"../ort"),
    "opts": (b"[options]\n\tstrategy = x/../evil\n", b"[options]\nstrategy=a\nstrategy=ort", b"[options"),
    "merge_rr": (b"aa\t../victim\0", b"aa\tf\0bb\t/etc/passwd\0", b"aa\ta/../../b\0"),
    "origin": (b"URL: ext::sh -c x\nPull: a\n", b"ext::x#main", b"URL:--upload-pack=x"),
    ".tool-versions": (b"nodejs path:/w/evil\n", b"python 3.1 path:x"),
    "hgrc": (b"[hooks]\nupdate = x", b"[paths]\ndefault = ssh://-oProxyCommand=x/y", b"[ui]\nssh=x", b"%include x"),
    "branch.conf": (b"gpg_signing_command = x", b"[ALIASES]"),
}
NAMING_NONE = {
    "git-rebase-todo": (b"pick abc exec\nfixup abc\n# exec y\n", b"", b"edit abc x\n"),
    "strategy": (b"ort\n", b"recursive", b""),
    "opts": (b"[options]\n\tmainline = 1\n\tstrategy = ort\n",),
    "merge_rr": (b"aa\tf\0bb.1\tsub/..x\0", b""),
    "origin": (b"URL: https://example.test/x\nPull: a:b\n",),
    ".tool-versions": (b"nodejs 20.1 18 # path:x\n",),
    "hgrc": (b"# example\n[paths]\ndefault = https://example.test/x\n\n# [hooks]\n",),
    "branch.conf": (b"parent_location = ../x/\n", b""),
}


@pytest.mark.parametrize(("name", "data"), [(name, data) for name, found in NAMING.items() for data in found])
def test_entries_that_name_a_program_are_found(name: str, data: bytes) -> None:
    assert find_programs(name, data)


@pytest.mark.parametrize(("name", "data"), [(name, data) for name, found in NAMING_NONE.items() for data in found])
def test_files_that_tools_write_themselves_name_none(name: str, data: bytes) -> None:
    assert not find_programs(name, data)
