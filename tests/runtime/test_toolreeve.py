"""The runtime as a program uses it: async, sync, by the documented names."""

import asyncio
import inspect
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import toolreeve
from tests.world import World
from toolreeve import (
    DangerLevel,
    ErrorCode,
    ExecutionContext,
    PermissionMode,
    PermissionPolicy,
    PermissionRule,
    ToolError,
    Toolreeve,
    ToolreeveError,
    tool,
)
from toolreeve.config import Policy, Workspace
from toolreeve.core.verdict import Decision
from toolreeve.policy.known_tools import get_tool_danger_level

DOCUMENTED = [
    "Toolreeve",
    "tool",
    "mcp_tool",
    "Tool",
    "ToolResult",
    "DangerLevel",
    "get_tool_danger_level",
    "is_tool_safe",
    "requires_approval",
    "PermissionPolicy",
    "PermissionMode",
    "PermissionRule",
    "ExecutionContext",
    "BUILTIN_TOOLS",
    "ToolRegistry",
    "Request",
    "Answer",
    "Settings",
    "Effect",
    "TerminalChannel",
    "SyncToolreeve",
]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_documented_names_are_importable_from_the_package(name: str) -> None:
    assert getattr(toolreeve, name) is not None
    assert name in toolreeve.__all__


async def test_files_are_written_read_and_put_back(world: World) -> None:
    async with world.reeve(settings=world.settings(policy=Policy(allowed_tools=("write_file", "undo")))) as reeve:
        first = await reeve.call("write_file", path="notes/a.txt", content="one")
        second = await reeve.call("write_file", {"path": "notes/a.txt"}, content="two")
        await reeve.undo(second.meta.call_id)
        read = await reeve.call("read_file", path="notes/a.txt")
        undone = await reeve.undo(first.meta.call_id)
        records = await reeve.audit.show(undone.meta.call_id)

    assert (first.success, second.success, read.output) == (True, True, "one")
    assert not (world.workspace / "notes").exists()
    assert records[-1].body["tool"] == "undo"


async def test_undo_meets_the_rules_about_what_it_would_change(world: World) -> None:
    rule = PermissionRule(effect=["write", "delete"], target={"under": "tests"}, decision="deny", reason="tests stay")
    async with world.reeve(policy=PermissionPolicy(ExecutionContext(mode=PermissionMode.BYPASS))) as reeve:
        written = await reeve.call("write_file", path="tests/a.txt", content="x")

    async with world.reeve(policy=[rule], approve=lambda _: True) as reeve:
        refused = await reeve.undo(written.meta.call_id)

    assert refused.error is not None
    assert refused.error.message == "tests stay"
    assert (world.workspace / "tests/a.txt").exists()


async def test_nobody_is_asked_about_what_the_guard_refuses(world: World) -> None:
    asked: list[Any] = []

    async def approve(request: Any) -> bool:
        asked.append(request)
        return True

    async with world.reeve(approve=approve) as reeve:
        secret = await reeve.call("write_file", path=".env", content="x")
        outside = await reeve.call("delete_file", path="/etc/passwd")
        governing = await reeve.call("write_file", path="toolreeve.toml", content="")

    assert not asked
    codes = [result.error.code for result in (secret, outside, governing) if result.error]
    assert codes == [ErrorCode.PATH_FORBIDDEN] * 3


async def test_the_question_shows_what_would_change(world: World) -> None:
    (world.workspace / "a.txt").write_text("old\n")
    seen: list[str] = []

    async def approve(request: Any) -> bool:
        seen.append(request.preview)
        return False

    async with world.reeve(approve=approve) as reeve:
        await reeve.call("write_file", path="a.txt", content="new\n")

    assert "-old" in seen[0]
    assert "+new" in seen[0]


async def test_a_missing_file_is_answered_with_what_was_meant(world: World) -> None:
    (world.workspace / "backend/tests").mkdir(parents=True)
    (world.workspace / "backend/tests/test_api.py").write_text("")

    async with world.reeve() as reeve:
        result = await reeve.call("read_file", path="tests/test_api.py")

    assert result.error is not None
    assert result.error.code in (ErrorCode.FILE_NOT_FOUND, ErrorCode.DIR_NOT_FOUND)
    assert result.error.suggestions[0] == "backend/tests/test_api.py"
    assert result.to_dict()["meta"]["auto_recovery"] is True


async def test_the_runtimes_own_state_is_out_of_reach_even_inside_the_workspace(world: World) -> None:
    from toolreeve.config import State

    inside = world.settings(state=State(dir=str(world.workspace / "state")))
    async with world.reeve(
        settings=inside, policy=PermissionPolicy(ExecutionContext(mode=PermissionMode.BYPASS))
    ) as reeve:
        read = await reeve.call("read_file", path="state/toolreeve.db")
        written = await reeve.call("write_file", path="state/toolreeve.db", content="")

    assert read.error is not None
    assert written.error is not None
    assert (read.error.code, written.error.code) == (ErrorCode.PATH_FORBIDDEN, ErrorCode.PATH_FORBIDDEN)
    assert written.meta.verdict.layer == "floor"


@pytest.mark.parametrize("mode", list(PermissionMode))
async def test_every_registered_tool_has_a_decided_outcome_in_every_mode(world: World, mode: PermissionMode) -> None:
    async with world.reeve(policy=PermissionPolicy(ExecutionContext(mode=mode))) as reeve:
        for bound in reeve.tools.list():
            args = {name: _sample(schema) for name, schema in bound.spec.input["properties"].items()}
            args = {name: value for name, value in args.items() if name in bound.spec.input["required"]}
            verdict = reeve.explain(bound.spec.name, args).verdict
            danger = bound.danger(args)
            reads = bound.spec.read_only or (bound.assess is not None and danger is DangerLevel.SAFE)

            assert verdict.layer != "none"
            accepted = danger <= DangerLevel.LOW or bound.spec.undoable
            expected = {
                PermissionMode.BYPASS: {Decision.ALLOW},
                PermissionMode.PLAN: {Decision.ALLOW} if reads else {Decision.DENY},
                PermissionMode.DEFAULT: {Decision.ALLOW} if danger <= DangerLevel.LOW else {Decision.ASK},
                PermissionMode.ACCEPT_EDITS: {Decision.ALLOW} if accepted else {Decision.ASK},
                PermissionMode.STRICT: {Decision.DENY} if danger >= DangerLevel.HIGH else {Decision.ASK},
            }[mode]
            refused = verdict.layer == "tool"  # the arguments are not a URL, or no program of the system
            assert refused or verdict.decision in expected, (bound.spec.name, mode, verdict)


def _sample(schema: dict[str, Any]) -> Any:
    kind = schema.get("type")
    return [{"old": "a", "new": "b"}] if kind == "array" else 1 if kind == "integer" else "a"


def test_what_policy_knows_of_the_builtin_tools_is_what_they_say_themselves(world: World) -> None:
    for bound in world.reeve().tools.list():
        if bound.spec.name != "undo":
            assert get_tool_danger_level(bound.spec.name) is bound.spec.danger, bound.spec.name


def test_the_sync_runtime_takes_the_same_road(world: World) -> None:
    (world.workspace / "a.txt").write_text("hello")

    with Toolreeve.sync(settings=world.settings()) as reeve:
        read = reeve.call("read_file", path="a.txt")
        several = reeve.batch([{"tool": "calculate", "args": {"expression": f"{n}*2"}} for n in range(3)])
        chained = reeve.chain(
            [
                {"tool_name": "read_file", "params": {"path": "a.txt"}},
                {"tool_name": "calculate", "params": {"expression": "{{previous.size}} * 2"}},
            ]
        )

    assert read.output == "hello"
    assert [result.output for result in several] == [0, 2, 4]
    assert chained[-1].output == 10


async def test_the_sync_runtime_works_inside_a_running_loop_and_from_many_threads(world: World) -> None:
    with Toolreeve.sync(settings=world.settings()) as reeve:
        outputs: list[Any] = []

        def work(n: int) -> None:
            outputs.append(reeve.call("calculate", expression=f"{n}+1").output)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)

    assert sorted(outputs) == list(range(1, 11))


async def test_a_call_in_a_batch_or_chain_keeps_its_own_session_and_principal(world: World) -> None:
    from toolreeve import Context, Principal, ToolCall

    @tool(danger=DangerLevel.SAFE)
    async def whose(ctx: Context, after: str = "") -> str:
        """Tell whose call it is."""
        return f"{after}{ctx.principal.user}"

    call = ToolCall(tool="whose", args={"after": "{{previous.output}}+"}, session="s", principal=Principal(user="ann"))
    async with world.reeve(tools=[whose]) as reeve:
        _, chained = await reeve.chain([{"tool": "whose"}, call])
        (together,) = await reeve.batch([ToolCall(tool="whose", args={}, principal=Principal(user="bob"))])

    assert (chained.output, chained.meta.session, together.output) == ("local+ann", "s", "bob")


def test_calls_outside_with_say_how_to_start(world: World) -> None:
    reeve = Toolreeve.sync(settings=world.settings())

    with pytest.raises(ToolreeveError, match=r"with Toolreeve\.sync\(\)"):
        reeve.call("get_datetime")


async def test_calls_before_the_start_say_how_to_start(world: World) -> None:
    with pytest.raises(ToolreeveError, match="async with"):
        await world.reeve().call("get_datetime")


def test_an_unknown_argument_of_the_constructor_raises() -> None:
    with pytest.raises(TypeError, match="wrkspace"):
        Toolreeve(wrkspace=".")  # type: ignore[call-arg]


async def test_the_documented_flat_call_works_and_raises_as_documented(world: World) -> None:
    (world.workspace / "a.txt").write_text("hello")

    async with world.reeve() as reeve:
        flat = await reeve.execute_mcp_tool("mcp__toolreeve_builtin__read_file", {"path": "a.txt"})
        with pytest.raises(PermissionError, match=r"Tool 'write_file' \(danger=medium\) requires approval"):
            await reeve.execute_mcp_tool("mcp__toolreeve_builtin__write_file", {"path": "b.txt", "content": "x"})
        with pytest.raises(ValueError, match="not of the form"):
            await reeve.execute_mcp_tool("mcp__nothing", {})
        with pytest.raises(ValueError, match="no MCP server is called 'elsewhere'"):
            await reeve.execute_mcp_tool("mcp__elsewhere__tool", {})
        chained = await reeve.execute_tool_chain([{"tool_name": "read_file", "params": {"path": "a.txt"}}])
        together = await reeve.execute_batch([{"tool": "read_file", "params": {"path": "a.txt"}}] * 2)

    assert (flat["output"], flat["content"], flat["size"]) == ("hello", "hello", 5)
    assert chained[0]["content"] == together[1]["content"] == "hello"
    assert not (world.workspace / "b.txt").exists()


async def test_tools_are_listed_in_the_format_of_each_provider(world: World) -> None:
    async with world.reeve() as reeve:
        for provider in ("openai", "anthropic", "ollama", "gemini", "mcp"):
            assert "read_file" in str(reeve.tools_for(provider))


async def test_a_rule_from_code_decides(world: World) -> None:
    rule = PermissionRule(tool="read_file", when={"path": {"glob": "*.key"}}, decision="deny", reason="keys stay here")
    (world.workspace / "a.key").write_text("k")
    (world.workspace / "a.txt").write_text("t")

    async with world.reeve(policy=[rule]) as reeve:
        refused = await reeve.call("read_file", path="a.key")
        allowed = await reeve.call("read_file", path="a.txt")

    assert refused.error is not None
    assert (refused.error.code, refused.error.message) == (ErrorCode.DENIED, "keys stay here")
    assert allowed.success


@pytest.mark.parametrize("before", ["rules:\n  - {tool: delete_file, decision: deny}\n", "rules: []\n", ""])
async def test_answering_always_writes_a_rule_that_holds_in_the_next_run(
    world: World, tmp_path: Path, before: str
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(before)
    settings = world.settings(policy=Policy(files=(str(policy),)))
    asked: list[str] = []

    async def always(request: Any) -> Any:
        asked.append(request.tool)
        return request.allow(scope="always")

    for _ in range(2):
        async with world.reeve(settings=settings, approve=always) as reeve:
            for _ in range(2):
                assert (await reeve.call("write_file", path="a.txt", content="x")).success

    assert asked == ["write_file"]
    assert policy.read_text().startswith((before or "rules:\n").replace(" []", "") + "  - {")


async def test_rules_for_always_keep_the_link_the_mode_and_each_other(world: World, tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "policy.yaml"
    real.write_text("rules:\n- {tool: delete_file, decision: deny}\n")
    real.chmod(0o640)
    link.symlink_to(real)
    settings = world.settings(policy=Policy(files=(str(link),)))

    async def always(request: Any) -> Any:
        return request.allow(scope="always")

    async with (
        world.reeve(settings=settings, approve=always) as one,
        world.reeve(settings=settings, approve=always) as two,
    ):
        await asyncio.gather(
            *(reeve.call("write_file", path=f"{number}.txt", content="") for number, reeve in enumerate([one, two] * 3))
        )

    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert real.read_text().count("approved permanently") == 6


async def test_writing_can_be_turned_off_for_good(world: World) -> None:
    settings = world.settings(workspace=Workspace(dir=str(world.workspace), allow_write=False))
    bypass = PermissionPolicy(ExecutionContext(mode=PermissionMode.BYPASS))

    async with world.reeve(settings=settings, policy=bypass) as reeve:
        result = await reeve.call("write_file", path="a.txt", content="x")

    assert result.error is not None
    assert result.error.code is ErrorCode.WRITE_DISABLED


async def test_a_tool_object_of_ones_own_is_called_like_any_other(world: World) -> None:
    class Shout:
        name = "shout"
        description = "Say it loudly."
        danger = DangerLevel.SAFE

        @property
        def input_schema(self) -> dict[str, Any]:
            return {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

        async def execute(self, tool_input: dict[str, Any]) -> str:
            return str(tool_input["text"]).upper()

    async with world.reeve(tools=[Shout()]) as reeve:
        assert (await reeve.call("shout", text="hi")).output == "HI"


def test_two_tools_of_one_name_are_an_error_that_names_both(world: World) -> None:
    @tool
    def read_file() -> None:
        """Another one."""

    with pytest.raises(ToolreeveError, match="two tools are called 'read_file'"):
        world.reeve(tools=[read_file])


def test_the_documented_registry_calls_through_the_road(tmp_path: Path) -> None:
    """In a process of its own: it uses the user's configuration and the current directory."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("hello")
    program = """
import asyncio
from toolreeve import BUILTIN_TOOLS
read = BUILTIN_TOOLS.get("read_file")
result = read["func"]("a.txt")
assert result["success"] and result["data"]["content"] == "hello", result
async def main():
    return await BUILTIN_TOOLS.get("calculate")["func"]("(2 + 3) * 4 ** 2")
assert asyncio.run(main())["data"]["result"] == 80
assert "file" in BUILTIN_TOOLS.get_categories()
assert not read["func"]("/etc/passwd")["success"]
print("done")
"""
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path / "work",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")


async def test_closing_ends_the_calls_under_way_with_a_code_and_a_record(world: World) -> None:
    begun = asyncio.Event()

    @tool(danger=DangerLevel.LOW, read_only=False)
    async def hang() -> None:
        """Never end."""
        begun.set()
        await asyncio.Event().wait()

    reeve = await world.reeve(tools=[hang]).start()
    hanging = asyncio.create_task(reeve.call("hang"))
    await begun.wait()
    await reeve.close()
    result = await hanging

    assert result.error is not None
    assert result.error.code is ErrorCode.CANCELLED
    async with world.reeve() as later:
        records = await later.audit.show(result.meta.call_id)
    assert [record.kind for record in records] == ["intent", "call"]


async def test_a_tool_that_closes_the_runtime_ends_with_it(world: World) -> None:
    @tool(danger=DangerLevel.SAFE)
    async def close() -> None:
        """Close the runtime that runs me."""
        await reeve.close()

    async with world.reeve(tools=[close]) as reeve:
        result = await reeve.call("close")

    assert result.error is not None
    assert result.error.code is ErrorCode.CANCELLED
    async with world.reeve() as later:
        assert [record.kind for record in await later.audit.show(result.meta.call_id)] == ["call"]


async def test_a_runtime_is_started_once(world: World) -> None:
    reeve = await world.reeve().start()

    with pytest.raises(ToolreeveError, match="started only once"):
        await reeve.start()
    await reeve.close()
    await reeve.close()
    with pytest.raises(ToolreeveError, match="started only once"):
        await reeve.start()


def test_type_checkers_know_which_names_there_are(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("from toolreeve import Toolreeve\nfrom toolreeve import Nonsense\n")

    checked = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--follow-imports=silent",
            "--cache-dir",
            tmp_path / "cache",
            program,
        ],
        capture_output=True,
        text=True,
        cwd=Path(toolreeve.__file__).parent.parent,
        timeout=300,
    )

    assert 'Module "toolreeve" has no attribute "Nonsense"' in checked.stdout
    assert "Toolreeve" not in checked.stdout


def _answer_nothing() -> bool:
    return True


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"approve": 5}, "approve=5"),
        ({"approve": [5]}, "approve=5"),
        ({"approve": _answer_nothing}, "called with the request alone"),
        ({"policy": 5}, "policy=5"),
        ({"policy": ["deny all"]}, "PermissionRule"),
        ({"tools": 5}, "tools=5"),
        ({"tools": _answer_nothing}, "pass a list"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_refused_at_once(world: World, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ToolreeveError, match=said):
        world.reeve(**options)


async def test_a_call_takes_a_session_and_a_timeout_unless_the_tool_has_its_own(world: World) -> None:
    @tool(danger="safe")
    def own(timeout: int, session: str = "") -> str:
        """Have both."""
        return f"{timeout} {session}"

    @tool(danger="safe")
    async def slow() -> None:
        """Never end."""
        await asyncio.Event().wait()

    async with world.reeve(tools=[own, slow]) as reeve:
        late = await reeve.call("slow", session="s", timeout=0.05)
        mine = await reeve.call("own", timeout=7, session="x")
        both = await reeve.call("own", {"timeout": 7, "session": "x"}, session="y")

    assert late.error is not None
    assert (late.error.code, late.meta.session) == (ErrorCode.TIMEOUT, "s")
    assert (mine.output, mine.meta.session) == ("7 x", reeve.session)
    assert (both.output, both.meta.session) == ("7 x", "y")


async def test_unwrap_gives_the_output_or_raises_the_error(world: World) -> None:
    async with world.reeve() as reeve:
        assert (await reeve.call("calculate", expression="6*7")).unwrap() == 42
        with pytest.raises(ToolError, match="File not found") as caught:
            (await reeve.call("read_file", path="none")).unwrap()

    assert caught.value.code is ErrorCode.FILE_NOT_FOUND


@pytest.mark.parametrize(
    ("builtin", "names"),
    [
        (False, []),
        ((), []),
        ("calculate,undo", ["calculate", "undo"]),
        (["utility", "-calculate"], ["get_datetime"]),
    ],
)
def test_the_builtin_tools_can_be_left_out_or_chosen(world: World, builtin: Any, names: list[str]) -> None:
    reeve = world.reeve(builtin=builtin)

    assert [bound.spec.name for bound in reeve.tools] == names


def test_a_builtin_toolset_with_a_typo_is_refused(world: World) -> None:
    with pytest.raises(ToolreeveError, match="did you mean 'calculate'"):
        world.reeve(builtin=["calculat"])


async def test_whatever_did_not_load_is_a_problem_and_a_log_line(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    settings = world.settings(tool_files=(str(world.workspace / "mispelt.yaml"),))

    async with world.reeve(settings=settings, mcp_servers={"bad": {"command": "no-such-program"}}) as reeve:
        problems = "\n".join(map(str, reeve.problems))

    assert "mispelt.yaml" in problems
    assert "mcp_servers.bad" in problems
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "no-such-program" in caplog.text


def test_public_names_have_docstrings() -> None:
    for name in toolreeve.__all__:
        public = getattr(toolreeve, name)
        assert inspect.getdoc(public), name
        for member, value in vars(public).items() if isinstance(public, type) else ():
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{name}.{member}"


async def test_things_show_themselves_in_a_line(world: World) -> None:
    async with world.reeve() as reeve:
        (world.workspace / "a.txt").write_text("word " * 500)
        shown = [
            reeve,
            await reeve.call("read_file", path="a.txt"),
            await reeve.call("read_file", path="none"),
            reeve.tools,
            reeve.tools.get("bash"),
            reeve.configuration.settings,
            reeve.configuration,
        ]

    assert [len(repr(each)) < 200 for each in shown] == [True] * len(shown), list(map(repr, shown))


@pytest.mark.parametrize(
    ("tool", "args", "output"),
    [
        ("Read", {"file_path": "a.txt", "limit": 1}, "one\n"),
        ("Write", {"file_path": "b.txt", "content": "x"}, None),
        ("Edit", {"file_path": "a.txt", "old_string": "two", "new_string": "2"}, None),
        ("Bash", {"command": "cat a.txt", "timeout": 5000, "description": "Show it"}, "one\ntwo\n"),
        ("Grep", {"pattern": "TWO", "-i": True}, None),
        ("Glob", {"pattern": "*.txt"}, ["a.txt"]),
        ("LS", {"path": "."}, None),
    ],
)
async def test_the_names_and_arguments_of_agent_clients_are_understood(
    world: World, tool: str, args: dict[str, Any], output: Any
) -> None:
    (world.workspace / "a.txt").write_text("one\ntwo\n")
    policy = PermissionPolicy(ExecutionContext(mode=PermissionMode.BYPASS))

    async with world.reeve(policy=policy) as reeve:
        result = await reeve.call(tool, args)

    assert result.error is None
    assert output is None or result.output == output


async def test_an_argument_that_we_cannot_honour_is_refused(world: World) -> None:
    async with world.reeve() as reeve:
        result = await reeve.call("Edit", file_path="a", old_string="x", new_string="y", replace_all=True)

    assert result.error is not None
    assert result.error.code is ErrorCode.INVALID_PARAMS


def test_the_root_directory_is_refused_as_a_workspace_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    monkeypatch.delenv("TOOLREEVE_WORKSPACE_DIR", raising=False)

    with pytest.raises(ToolreeveError, match="whole file system"):
        Toolreeve()


async def test_a_home_directory_as_workspace_is_said_loudly(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HOME", str(world.workspace))

    async with world.reeve():
        pass

    assert "your whole home directory" in caplog.text


async def test_a_builtin_server_keeps_the_name_that_the_program_gives_it(world: World) -> None:
    server = {"name": "mine", "transport": {"type": "builtin"}}
    async with world.reeve(mcp_servers=[server]) as reeve:
        flat = await reeve.execute_mcp_tool("mcp__mine__file_exists", {"path": "x"})
        listed = await reeve.discover_mcp_tools("mine")

    assert flat["exists"] is False
    assert len(listed) > 10


async def test_a_refusal_says_what_can_be_done_from_a_program(world: World) -> None:
    async with world.reeve() as reeve:
        with pytest.raises(PermissionError, match=r"nobody can be asked\. Either pass `approve=`") as raised:
            await reeve.execute_mcp_tool("write_file", {"path": "x", "content": "y"})

    assert "terminal" not in str(raised.value)


def test_the_modes_that_are_advised_include_bypass() -> None:
    with pytest.raises(ToolreeveError, match="command line bypass"):
        Toolreeve(mode="x")


def test_a_function_registered_with_the_builtin_tools_can_be_called(tmp_path: Path) -> None:
    script = (
        "from toolreeve import BUILTIN_TOOLS as B\n"
        'B.register("mine", lambda x: {"x": x}, "d", "system", {"x": "string"})\n'
        'print(B.get("mine")["func"]("1")["error"]["code"])\n'
        "B.approve = lambda request: True\n"
        'print(B.get("mine")["func"]("1")["data"]["x"])\n'
    )
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert ended.stdout.split() == ["E_PERMISSION", "1"], ended.stderr
