from tests.cli.conftest import Shell


def test_all_tools_are_listed_with_their_danger(shell: Shell) -> None:
    rows = [line.split()[:3] for line in shell.run("tools").out.splitlines()]

    assert ["read_file", "safe", "file"] in rows
    assert ["delete_file", "high", "file"] in rows


def test_one_tool_is_shown_with_its_parameters(shell: Shell) -> None:
    printed = shell.run("tools", "write_file")

    assert "danger medium" in printed.out
    assert "toolreeve call write_file" in printed.out
    assert shell.run("tools", "write_file", "--json").json["input_schema"]["required"] == ["path", "content"]


def test_an_unknown_tool_exits_with_5_and_suggests(shell: Shell) -> None:
    printed = shell.run("tools", "red_file")

    assert (printed.status, "did you mean 'read_file'?" in printed.err) == (5, True)


def test_tools_are_found_by_words(shell: Shell) -> None:
    found = [tool["name"] for tool in shell.run("tools", "--search", "delete", "--json").json]

    assert found[0] == "delete_file"


def test_a_providers_format_is_printed(shell: Shell) -> None:
    tools = shell.run("tools", "--for", "openai").json

    assert {tool["type"] for tool in tools} == {"function"}


def test_listing_tools_leaves_no_database_behind(shell: Shell) -> None:
    shell.run("tools", "--all")

    assert not (shell.home / ".local/state/toolreeve/toolreeve.db").exists()


def test_a_description_is_listed_to_the_end_of_its_first_paragraph(shell: Shell) -> None:
    (calculate,) = (line for line in shell.run("tools").out.splitlines() if line.startswith("calculate "))
    described = shell.run("tools", "calculate", "--json").json["description"]

    assert "\n" in described
    assert calculate.endswith(" ".join(described.split("\n\n")[0].split()))


def test_tools_that_are_not_registered_say_what_they_lack_and_what_adds_it(shell: Shell) -> None:
    rows = {each["name"]: each for each in shell.run("tools", "--all", "--json").json}

    assert rows["gmail_send"]["available"] is False
    assert rows["anthropic_usage"]["commands"] == ["toolreeve secrets set ANTHROPIC_ADMIN_KEY"]
    assert "terms" in rows["linkedin_jobs"]["note"]
    printed = shell.run("tools", "--all").out
    assert "Not registered:" in printed
    assert "toolreeve secrets set ANTHROPIC_ADMIN_KEY" in " ".join(printed.split())


def test_enabling_linkedin_says_that_its_terms_restrict_it(shell: Shell) -> None:
    config = shell.home / ".config/toolreeve"
    config.mkdir(parents=True)
    (config / "toolreeve.toml").write_text('[connectors]\nenabled = ["linkedin_*"]\n')

    printed = shell.run("tools")

    assert "linkedin_jobs" in printed.out
    assert "terms of service restrict automated access" in printed.err
