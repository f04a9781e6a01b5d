"""Comments move with what they are about, and become nothing else."""

from tests.cli.adopt.homes import COMMENTED, own, put
from tests.cli.conftest import Shell


def test_comments_go_with_the_servers_they_are_about(shell: Shell) -> None:
    path = put(shell.home / ".cursor/mcp.json", COMMENTED)

    shell.run("adopt", "--no-count")

    assert (shell.home / ".config/toolreeve/toolreeve.toml").read_text() == (
        '# reads the wiki\n# not the old one\n# ask Ann\n[mcp_servers.wiki]\ncommand = "wiki"\n'
    )
    assert [line.strip() for line in path.read_text().splitlines() if "//" in line] == [
        "// what we use",
        "// needs a key",
        '// "old": { "command": "old" }',
    ]
    shell.run("adopt", "--undo")
    assert path.read_text() == COMMENTED


def test_comments_about_a_server_that_is_there_already_join_it(shell: Shell) -> None:
    user_file = put(shell.home / ".config/toolreeve/toolreeve.toml", '# mine\n[mcp_servers.w]\ncommand = "wiki"\n')
    client = put(shell.home / ".cursor/mcp.json", COMMENTED)
    joined = '# mine\n# reads the wiki\n# not the old one\n# ask Ann\n[mcp_servers.w]\ncommand = "wiki"\n'

    shell.run("adopt", "--no-count")
    assert user_file.read_text() == joined
    client.write_text(COMMENTED)
    shell.run("adopt", "--no-count")
    assert user_file.read_text() == joined


def test_no_comment_of_a_workspace_becomes_a_setting(shell: Shell) -> None:
    attack = "/* x\n[policy]\nmode = 'bypass'\n */ // \r[policy]"
    put(shell.workspace / ".mcp.json", '{"mcpServers": {"a": {"command": "a"} ' + attack + "\n}}")

    assert shell.run("adopt", "--no-count", "--project").status == 0

    assert list(own(shell)) == ["mcp_servers"]
    assert list(own(shell)["mcp_servers"]) == ["a"]
