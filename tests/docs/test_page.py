"""The harness finds every way in which a page can be wrong."""

import os
import select
from pathlib import Path

import pytest

from tests.docs.page import Page, PageProblem, environment
from tests.docs.terminal import Command, Terminal


def run(tmp_path: Path, text: str) -> None:
    path = tmp_path / "page.md"
    path.write_text(text)
    with Page(path, tmp_path) as page:
        page.run()


def test_output_that_differs_is_found(tmp_path: Path) -> None:
    with pytest.raises(PageProblem, match=r"page\.md:2: "):
        run(tmp_path, "```console\n$ echo one\ntwo\n```\n")


def test_a_wildcard_stands_for_part_of_a_line_and_for_lines(tmp_path: Path) -> None:
    run(tmp_path, "```console\n$ printf 'a 17 b\\nc\\nd\\ne\\n'\na … b\n…\ne\n```\n")


def test_a_wildcard_does_not_cross_lines(tmp_path: Path) -> None:
    with pytest.raises(PageProblem):
        run(tmp_path, "```console\n$ printf 'a\\nb\\n'\na…b\n```\n")


def test_a_command_that_fails_unsaid_is_found(tmp_path: Path) -> None:
    with pytest.raises(PageProblem, match="failed with 1"):
        run(tmp_path, "```console\n$ false\n```\n")


def test_a_status_may_be_shown_instead(tmp_path: Path) -> None:
    run(tmp_path, "```console\n$ (exit 3)\n$ echo $?\n3\n```\n")


def test_the_shell_remembers_from_block_to_block(tmp_path: Path) -> None:
    run(tmp_path, "```console\n$ NAME=reeve\n```\n\n```console\n$ echo $NAME\nreeve\n```\n")


def test_an_answer_that_is_shown_is_typed(tmp_path: Path) -> None:
    ask = "read -p 'Sure? : ' answer; echo got $answer"
    run(tmp_path, f"```console\n$ {ask}\nSure? : yes\ngot yes\n```\n")


def test_python_shows_what_it_prints(tmp_path: Path) -> None:
    run(tmp_path, "```python\nx = 2\n```\n\n```python\nprint(x + 1)  # → 3\n```\n")


def test_python_that_prints_something_else_is_found(tmp_path: Path) -> None:
    with pytest.raises(PageProblem, match="printed"):
        run(tmp_path, "```python\nprint(4)  # → 3\n```\n")


def test_python_that_prints_more_than_is_shown_is_found(tmp_path: Path) -> None:
    with pytest.raises(PageProblem, match="printed"):
        run(tmp_path, "```python\nprint(4)\n```\n")


def test_python_that_raises_is_found_at_its_line(tmp_path: Path) -> None:
    with pytest.raises(PageProblem, match="line 4"):
        run(tmp_path, "\n```python\nx = 1\nx / 0\n```\n")


def test_await_needs_no_function(tmp_path: Path) -> None:
    run(tmp_path, "```python\nimport asyncio\nawait asyncio.sleep(0)\n```\n")


def test_a_fresh_block_knows_nothing_of_the_others(tmp_path: Path) -> None:
    with pytest.raises(PageProblem, match="NameError"):
        run(tmp_path, "```python\nx = 1\n```\n\n<!-- fresh -->\n```python\nx\n```\n")


def test_a_settings_file_is_checked(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="unknown key"):
        run(tmp_path, "<!-- file: toolreeve.toml -->\n```toml\n[policy]\nmoode = 'plan'\n```\n")


def test_a_policy_file_of_a_project_may_not_allow(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="only tighten"):
        run(tmp_path, "<!-- file: policy.yaml -->\n```yaml\nrules:\n  - {tool: bash, decision: allow}\n```\n")


@pytest.mark.parametrize("language", ["", "bash", "sh", "yaml", "toml", "py"])
def test_a_block_that_nothing_runs_is_found(tmp_path: Path, language: str) -> None:
    with pytest.raises(PageProblem, match="nothing runs"):
        run(tmp_path, f"```{language}\nls\n```\n")


@pytest.mark.parametrize(("opening", "closing"), [("```console title", "```"), ("~~~console", "~~~")])
def test_no_way_to_open_a_block_keeps_it_from_being_run(tmp_path: Path, opening: str, closing: str) -> None:
    with pytest.raises(PageProblem, match="printed"):
        run(tmp_path, f"{opening}\n$ echo one\ntwo\n{closing}\n")


def test_a_block_that_is_not_closed_is_found(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="never closed"):
        run(tmp_path, "```console\n$ ls\n")


def test_a_client_that_would_start_what_is_not_there_is_found(tmp_path: Path) -> None:
    with pytest.raises(PageProblem, match="no program called toolreve"):
        run(tmp_path, '```json\n{"mcpServers": {"toolreeve": {"command": "toolreve", "args": ["mcp"]}}}\n```\n')


def test_a_server_of_the_settings_that_cannot_be_used_is_found(tmp_path: Path) -> None:
    server = '[mcp_servers.web]\nurl = "https://${NOT_SET_ANYWHERE}/mcp"'
    with pytest.raises(Exception, match="NOT_SET_ANYWHERE is not set"):
        run(tmp_path, f"<!-- file: ~/.config/toolreeve/toolreeve.toml -->\n```toml\n{server}\n```\n")


def test_a_page_listens_on_a_port_of_its_own(tmp_path: Path) -> None:
    ours = "echo http://127.0.0.1:$TOOLREEVE_SERVE_PORT/mcp"
    run(tmp_path, f"```console\n$ {ours}\nhttp://127.0.0.1:8733/mcp\n$ test $TOOLREEVE_SERVE_PORT != 8733\n```\n")


def test_what_a_page_leaves_running_ends_with_it(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, environment(tmp_path))
    started, _ = terminal.run(Command("sleep 1000 & echo $!"))
    left = os.pidfd_open(int(started))
    terminal.close()

    assert select.select([left], [], [], 10.0)[0] == [left]
    os.close(left)
