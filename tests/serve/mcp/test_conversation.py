import asyncio
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.serve.mcp.pipe import CLIENT, envelope
from tests.serve.mcp.room import Room, room
from tests.world import World
from toolreeve import Context, DangerLevel, tool
from toolreeve.core.peer import Era, PeerError
from toolreeve.serve.mcp.caller import Caller, Client
from toolreeve.serve.mcp.conversation import MOST_RUNNING, Conversation
from toolreeve.serve.mcp.door import new_desk, new_view
from toolreeve.serve.mcp.wire import SERVER_KEY, VERSION_KEY, WireError
from toolreeve.system_info import Counter


@tool(danger=DangerLevel.SAFE)
async def echo(text: str) -> str:
    """Say it again."""
    return text


@tool(danger=DangerLevel.SAFE, timeout=600)
async def wait(context: Context) -> str:
    """Never end by itself."""
    context.progress("waiting")
    await asyncio.Event().wait()
    return "never"


@tool(danger=DangerLevel.SAFE)
async def steps(context: Context) -> str:
    """Report three steps."""
    for number in range(3):
        context.progress(f"step {number}")
        await asyncio.sleep(0)
    return "done"


@tool(danger=DangerLevel.SAFE)
async def roots(context: Context) -> dict[str, Any]:
    """Ask the client for its roots."""
    peer = context.call.peer
    assert peer is not None
    try:
        return await peer.request("roots/list", {})
    except PeerError as problem:
        return {"refused": problem.to_dict()}


TOOLS = [echo, wait, steps, roots]


async def test_the_handshake_says_who_we_are_and_tools_follow(world: World) -> None:
    async with room(world.reeve(tools=TOOLS)) as client:
        greeted = (await client.greet())["result"]
        listed = (await client.ask("tools/list"))["result"]["tools"]
        said = await client.call("echo", text="hello")

    assert (greeted["protocolVersion"], greeted["serverInfo"]["name"]) == ("2025-11-25", "toolreeve")
    assert greeted["capabilities"] == {"tools": {"listChanged": True}}
    assert "echo" in [each["name"] for each in listed]
    assert said == {
        "content": [{"type": "text", "text": "hello"}],
        "structuredContent": {"output": "hello"},
        "isError": False,
    }


@pytest.mark.parametrize(
    ("requested", "chosen"),
    [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")],
)
async def test_a_version_that_we_do_not_know_is_answered_with_one_that_we_do(
    world: World, requested: str, chosen: str
) -> None:
    async with room(world.reeve()) as client:
        params = {"protocolVersion": requested, "capabilities": {}, "clientInfo": CLIENT}

        assert (await client.ask("initialize", params))["result"]["protocolVersion"] == chosen


async def test_requests_sent_right_behind_the_handshake_are_served(world: World) -> None:
    async with room(world.reeve(tools=TOOLS)) as client:
        greeting = client.begin(
            "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
        )
        call = client.begin("tools/call", {"name": "echo", "arguments": {"text": "early"}})

        assert "result" in await client.answer_to(greeting)
        assert (await client.answer_to(call))["result"]["isError"] is False


async def test_every_answer_of_the_modern_era_says_it_is_complete_and_who_gave_it(world: World) -> None:
    async with room(world.reeve(tools=TOOLS)) as client:
        found = (await client.modern("server/discover"))["result"]
        listed = (await client.modern("tools/list"))["result"]
        said = (await client.modern("tools/call", {"name": "echo", "arguments": {"text": "hi"}}))["result"]

    for result in (found, listed, said):
        assert result["resultType"] == "complete"
        assert result["_meta"][SERVER_KEY]["name"] == "toolreeve"
    assert found["supportedVersions"] == ["2026-07-28"]
    assert (listed["ttlMs"], listed["cacheScope"]) == (0, "private")
    assert "ttlMs" not in said


async def test_a_handshake_in_a_modern_conversation_is_told_which_versions_there_are(world: World) -> None:
    async with room(world.reeve()) as client:
        await client.modern("server/discover")

        assert (await client.greet())["error"] == {
            "code": -32022,
            "message": "Unsupported protocol version",
            "data": {"supported": ["2026-07-28"], "requested": "2025-11-25"},
        }


async def test_a_modern_request_after_a_handshake_is_refused(world: World) -> None:
    async with room(world.reeve()) as client:
        await client.greet()

        assert (await client.modern("tools/list"))["error"]["code"] == -32600


async def test_a_modern_probe_that_failed_leaves_the_handshake_open(world: World) -> None:
    async with room(world.reeve()) as client:
        refused = await client.modern("server/discover", meta={VERSION_KEY: "2099-01-01"})
        greeted = await client.greet()

    assert refused["error"]["code"] == -32022
    assert refused["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}
    assert "result" in greeted


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({VERSION_KEY: "2026-07-28"}, -32602),
        ({VERSION_KEY: 7, **envelope()} | {VERSION_KEY: 7}, -32602),
        (envelope() | {"io.modelcontextprotocol/clientCapabilities": []}, -32602),
        (envelope() | {"io.modelcontextprotocol/clientInfo": "me"}, -32602),
        (envelope() | {"io.modelcontextprotocol/logLevel": "loud"}, -32602),
        (envelope() | {VERSION_KEY: "2025-11-25"}, -32022),
    ],
)
async def test_a_modern_request_must_say_who_sends_it(world: World, meta: dict[str, Any], code: int) -> None:
    async with room(world.reeve()) as client:
        assert (await client.ask("tools/list", {"_meta": meta}))["error"]["code"] == code


async def test_a_modern_conversation_takes_no_request_without_its_envelope(world: World) -> None:
    async with room(world.reeve()) as client:
        await client.modern("server/discover")

        assert (await client.ask("tools/list"))["error"]["code"] == -32602


@pytest.mark.parametrize(("method", "code"), [("tools/list", -32600), ("server/discover", -32601), ("no/such", -32601)])
async def test_nothing_is_served_before_the_handshake(world: World, method: str, code: int) -> None:
    async with room(world.reeve()) as client:
        assert (await client.ask(method))["error"]["code"] == code
        assert (await client.ask("ping"))["result"] == {}


async def test_the_handshake_is_made_once(world: World) -> None:
    async with room(world.reeve()) as client:
        await client.greet()

        assert (await client.greet())["error"]["code"] == -32600


@pytest.mark.parametrize("missing", ["protocolVersion", "capabilities", "clientInfo"])
async def test_a_handshake_that_lacks_something_is_refused_and_can_be_made_again(world: World, missing: str) -> None:
    async with room(world.reeve()) as client:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
        refused = await client.ask("initialize", {key: params[key] for key in params if key != missing})

        assert refused["error"]["code"] == -32602
        assert missing in refused["error"]["message"]
        assert "result" in await client.greet()


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        (b"{", -32700, None),
        (b"\xff\xfe", -32700, None),
        (b'"\\ud800"', -32700, None),
        (b"[" * 5000, -32700, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b"7", -32600, None),
        (b'{"id":4,"method":"ping"}', -32600, 4),
        (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', -32600, "a"),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":3,"method":5}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":3}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}', -32602, 3),
        (b'{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}}', -32602, 3),
    ],
)
async def test_what_is_no_request_is_answered_as_json_rpc_says(
    world: World, line: bytes, code: int, number: Any
) -> None:
    async with room(world.reeve()) as client:
        client.talk.hear(line)
        answer = await client.next()

        assert (answer["error"]["code"], answer["id"]) == (code, number)
        assert (await client.ask("ping"))["result"] == {}


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "no/such", "params": 7},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {"a": 1}}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        {"jsonrpc": "2.0", "id": "nobody-asked", "result": {}},
        {"jsonrpc": "2.0", "id": {}, "error": {"code": 1}},
    ],
)
async def test_notifications_and_answers_to_nothing_are_never_answered(world: World, message: Any) -> None:
    async with room(world.reeve(tools=TOOLS)) as client:
        await client.greet()
        client.say(message)

        assert (await client.ask("ping"))["result"] == {}
        assert client.heard == []


async def test_an_id_cannot_be_used_while_its_request_runs(world: World) -> None:
    async with room(world.reeve(tools=TOOLS)) as client:
        await client.greet()
        number = client.begin("tools/call", {"name": "wait", "arguments": {}})
        client.say({"jsonrpc": "2.0", "id": number, "method": "ping"})

        assert (await client.next())["error"]["code"] == -32600


async def test_there_is_an_end_to_how_much_runs_at_once() -> None:
    class Slow(Counter):
        async def call(self, params: Any, caller: Caller) -> dict[str, Any]:
            await asyncio.Event().wait()
            return {}

    client = Room()
    client.talk = Conversation(Slow(), client, session="one")
    await client.greet()
    for _ in range(MOST_RUNNING):
        client.begin("tools/call", {"name": "wait"})

    refused = await client.ask("tools/call", {"name": "wait"})
    await client.talk.finish(0)

    assert "too many" in refused["error"]["message"]


async def test_a_cancelled_call_ends_and_is_not_answered(world: World) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    @tool(danger=DangerLevel.SAFE, timeout=600)
    async def linger() -> str:
        """Never end by itself."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    async with room(world.reeve(tools=[linger])) as client:
        await client.greet()
        number = client.begin("tools/call", {"name": "linger", "arguments": {}})
        await began.wait()
        client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        async with asyncio.timeout(10):
            await ended.wait()
        await client.ask("ping")

    assert client.heard == []
    assert client.lines.empty()


async def test_progress_is_told_with_growing_numbers_to_whoever_asked_for_it(world: World) -> None:
    async with room(world.reeve(tools=TOOLS)) as client:
        await client.greet()
        await client.ask("tools/call", {"name": "steps", "arguments": {}, "_meta": {"progressToken": 7}})
        told, client.heard = client.heard, []
        await client.ask("tools/call", {"name": "steps", "arguments": {}})

    assert [(each["method"], each["params"]) for each in told] == [
        ("notifications/progress", {"message": f"step {number}", "progressToken": 7, "progress": number + 1})
        for number in range(3)
    ]
    assert client.heard == []


async def test_the_client_is_asked_over_the_same_wire(world: World) -> None:
    async with room(world.reeve(tools=TOOLS)) as client:
        await client.greet(roots={})
        number = client.begin("tools/call", {"name": "roots", "arguments": {}})
        asked = await client.until("roots/list")
        client.say({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [{"uri": "file:///a"}]}})

        assert (await client.answer_to(number))["result"]["structuredContent"] == {"roots": [{"uri": "file:///a"}]}


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"error": {"code": -1, "message": "no"}}, -1),
        ({"error": "no"}, -32603),
        ({"result": 7}, -32603),
    ],
)
async def test_a_client_that_answers_with_an_error_or_nonsense_is_understood(
    world: World, answer: dict[str, Any], code: int
) -> None:
    async with room(world.reeve(tools=TOOLS)) as client:
        await client.greet(roots={})
        number = client.begin("tools/call", {"name": "roots", "arguments": {}})
        asked = await client.until("roots/list")
        client.say({"jsonrpc": "2.0", "id": asked["id"], **answer})
        told = (await client.answer_to(number))["result"]["structuredContent"]

    assert told["refused"]["code"] == code


async def test_a_client_is_never_asked_for_what_it_did_not_declare(world: World) -> None:
    async with room(world.reeve(tools=TOOLS)) as client:
        await client.greet()
        told = (await client.call("roots"))["structuredContent"]

    assert told["refused"]["message"] == "the client does not support roots"
    assert client.heard == []


async def test_a_modern_client_is_never_asked_during_a_call(world: World) -> None:
    async with room(world.reeve(tools=TOOLS)) as client:
        params = {"name": "roots", "arguments": {}}
        told = await client.modern("tools/call", params, meta=envelope(roots={}))

    assert "cannot be asked" in told["result"]["structuredContent"]["refused"]["message"]


async def test_a_question_is_taken_back_when_its_call_is_cancelled(world: World) -> None:
    async with room(world.reeve(tools=TOOLS)) as client:
        await client.greet(roots={})
        number = client.begin("tools/call", {"name": "roots", "arguments": {}})
        asked = await client.until("roots/list")
        client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        withdrawn = await client.until("notifications/cancelled")

    assert withdrawn["params"]["requestId"] == asked["id"]


async def test_tools_that_come_and_go_are_announced_once_a_moment(world: World) -> None:
    reeve = world.reeve(tools=TOOLS)
    async with room(reeve) as client:
        await client.greet()
        reeve.tools.unregister("echo")
        reeve.tools.unregister("steps")
        told = await client.next()
        names = [each["name"] for each in (await client.ask("tools/list"))["result"]["tools"]]

    assert told == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    assert client.heard == []
    assert not {"echo", "steps"} & set(names)


async def test_a_client_that_does_not_read_misses_progress_but_no_change(world: World) -> None:
    reeve = world.reeve(tools=TOOLS)
    async with room(reeve) as client:
        await client.greet()
        client.congested = True
        number = client.begin("tools/call", {"name": "steps", "arguments": {}, "_meta": {"progressToken": 1}})
        reeve.tools.unregister("echo")
        await client.held.wait()
        reeve.tools.unregister("wait")
        await asyncio.sleep(0)
        unread = client.lines.qsize()
        client.read_again()
        await client.answer_to(number)

    assert unread == 0
    assert [each["method"] for each in client.heard] == ["notifications/tools/list_changed"]


async def test_a_listener_hears_what_it_asked_for_and_nothing_else(world: World) -> None:
    reeve = world.reeve(tools=TOOLS)
    async with room(reeve) as client:
        asked = {"toolsListChanged": True, "promptsListChanged": False, "resourceSubscriptions": ["file:///a"]}
        number = client.begin("subscriptions/listen", {"notifications": asked, "_meta": envelope()})
        acknowledged = await client.next()
        reeve.tools.unregister("echo")
        told = await client.next()

    mark = {"io.modelcontextprotocol/subscriptionId": number}
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"] == {"notifications": {"toolsListChanged": True}, "_meta": mark}
    assert (told["method"], told["params"]) == ("notifications/tools/list_changed", {"_meta": mark})


async def test_a_listener_is_answered_when_the_desk_closes_and_not_when_it_leaves(world: World) -> None:
    reeve = world.reeve(tools=TOOLS)
    async with reeve:
        desk, client = new_desk(reeve), Room()
        client.talk = Conversation(desk, client, session="one", view=new_view(reeve))
        params = {"notifications": {"toolsListChanged": True}, "_meta": envelope()}
        left, stayed = client.begin("subscriptions/listen", params), client.begin("subscriptions/listen", params)
        await client.next()
        await client.next()
        client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": left}})
        await client.modern("server/discover")
        desk.close()
        ended = await client.answer_to(stayed)
        await client.talk.finish(0)

    assert ended["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == stayed
    assert client.heard == []


@pytest.mark.parametrize("asked", [None, 7, {"resourceSubscriptions": "file:///a"}, {"resourceSubscriptions": [1]}])
async def test_a_listener_must_say_properly_what_it_wants(world: World, asked: Any) -> None:
    async with room(world.reeve()) as client:
        assert (await client.modern("subscriptions/listen", {"notifications": asked}))["error"]["code"] == -32602


async def test_a_crash_at_the_desk_is_told_without_its_details() -> None:
    class Broken(Counter):
        async def call(self, params: Any, caller: Caller) -> dict[str, Any]:
            raise RuntimeError("/home/somebody/secret")

    client = Room()
    client.talk = Conversation(Broken(), client, session="one")
    await client.greet()

    assert (await client.ask("tools/call"))["error"] == {"code": -32603, "message": "Internal error"}


async def test_an_answer_that_is_no_json_is_an_error_and_not_silence() -> None:
    class Odd(Counter):
        async def call(self, params: Any, caller: Caller) -> dict[str, Any]:
            return {"content": {1, 2}}

    client = Room()
    client.talk = Conversation(Odd(), client, session="one")
    await client.greet()

    assert (await client.ask("tools/call"))["error"]["code"] == -32603


async def test_requests_that_still_run_at_the_end_are_told_that_it_is_over() -> None:
    class Slow(Counter):
        async def call(self, params: Any, caller: Caller) -> dict[str, Any]:
            await asyncio.Event().wait()
            return {}

    client = Room()
    client.talk = Conversation(Slow(), client, session="one")
    await client.greet()
    number = client.begin("tools/call")
    await client.talk.finish(0.01)

    assert (await client.answer_to(number))["error"] == {"code": -32000, "message": "Connection closed"}


async def test_a_person_who_is_asked_when_the_client_goes_away_is_not_waited_for() -> None:
    client = Room()
    client.talk = Conversation(Counter(), client, session="one")
    asked = asyncio.create_task(client.talk.request("elicitation/create", {}))
    await client.next()
    await client.talk.finish(0)

    with pytest.raises(PeerError, match="gone"):
        await asked


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
METHODS = st.sampled_from(
    (
        *("initialize", "ping", "tools/list", "tools/call", "server/discover", "subscriptions/listen"),
        *("logging/setLevel", "notifications/cancelled", "notifications/initialized"),
        *("resources/read", "prompts/get", "completion/complete"),
    )
)
META = st.one_of(JSON, st.just(envelope()), st.just({"progressToken": 1}))
PARAMS = st.one_of(
    JSON,
    st.fixed_dictionaries(
        {},
        optional={
            "_meta": META,
            "name": st.one_of(JSON, st.sampled_from(["calculate", "bash", "call_tool", "search_tools"])),
            "arguments": JSON,
            "cursor": JSON,
            "uri": JSON,
            "requestId": JSON,
            "requestState": JSON,
            "inputResponses": JSON,
            "notifications": JSON,
            "level": JSON,
        },
    ),
)
MESSAGES = st.fixed_dictionaries(
    {}, optional={"jsonrpc": st.just("2.0"), "id": JSON, "method": METHODS | JSON, "params": PARAMS, "result": JSON}
)
LINES = st.one_of(
    st.binary(max_size=60).filter(lambda line: b"\n" not in line and line.strip()),
    st.one_of(MESSAGES, JSON).map(lambda message: json.dumps(message).encode()),
)


@given(lines=st.lists(LINES, max_size=8), handshake=st.booleans())
def test_no_line_ends_the_conversation_and_every_answer_is_json_rpc(lines: list[bytes], handshake: bool) -> None:
    asyncio.run(_hostile(lines, handshake))


async def _hostile(lines: list[bytes], handshake: bool) -> None:
    client = Room()
    client.talk = Conversation(Counter(), client, session="one")
    if handshake:
        await client.greet()
    for line in lines:
        client.talk.hear(line)
    await client.talk.finish(1)
    while not client.lines.empty():
        answer = json.loads(client.lines.get_nowait())
        assert answer["jsonrpc"] == "2.0"
        assert ("result" in answer) != ("error" in answer)
        assert isinstance(answer["id"], str | int | None)
        if "error" in answer:
            assert isinstance(answer["error"]["code"], int)
            assert isinstance(answer["error"]["message"], str)


@given(lines=st.lists(LINES, max_size=20))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_line_ends_a_conversation_with_the_desk(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    async def talk() -> None:
        async with room(World(tmp_path_factory.mktemp("world")).reeve()) as client:
            await client.greet()
            for line in lines:
                client.talk.hear(line)

            client.say({"jsonrpc": "2.0", "id": "still there", "method": "ping"})
            assert (await client.answer_to("still there"))["result"] == {}

    asyncio.run(talk())


async def test_a_caller_hears_nothing_more_once_it_is_answered() -> None:
    client = Room()
    client.talk = Conversation(Counter(), client, session="one")
    sender = Client(view=None, era=Era.LEGACY, session="one", log_level="info")  # type: ignore[arg-type]
    caller = Caller(sender, client.talk, progress_token=1)
    caller.closed = True

    await caller.notify("notifications/progress", {"message": "late"})
    with pytest.raises(PeerError):
        await caller.request("roots/list", {})

    assert client.lines.empty()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([0, 1, 2.5], [0, 1, 2.5]),
        ([5, 5, 4, 9], [5, 6, 7, 9]),
        ([None, None, 0], [1, 2, 3]),
        ([-2, "x", 7], [-2, -1, 7]),
    ],
)
async def test_progress_grows_whatever_is_reported(given: list[Any], told: list[float]) -> None:
    client = Room()
    client.talk = Conversation(Counter(), client, session="one")
    sender = Client(view=None, era=Era.LEGACY, session="one")  # type: ignore[arg-type]
    caller = Caller(sender, client.talk, progress_token="t")

    for number in given:
        await caller.notify("notifications/progress", {} if number is None else {"progress": number})

    assert [json.loads(client.lines.get_nowait())["params"]["progress"] for _ in given] == told


@pytest.mark.parametrize(
    ("least", "told"), [(None, []), ("debug", ["debug", "error"]), ("warning", ["error"]), ("emergency", [])]
)
async def test_log_lines_below_the_wanted_level_are_not_told(least: str | None, told: list[str]) -> None:
    client = Room()
    client.talk = Conversation(Counter(), client, session="one")
    caller = Caller(Client(view=None, era=Era.LEGACY, session="one", log_level=least), client.talk)  # type: ignore[arg-type]

    for level in ("debug", "error", "loud", 7):
        await caller.notify("notifications/message", {"level": level, "data": "x"})

    assert [json.loads(client.lines.get_nowait())["params"]["level"] for _ in told] == told
    assert client.lines.empty()


async def test_a_level_that_is_none_is_refused(world: World) -> None:
    async with room(world.reeve()) as client:
        await client.greet()

        assert (await client.ask("logging/setLevel", {"level": "warning"}))["result"] == {}
        assert (await client.ask("logging/setLevel", {"level": "loud"}))["error"]["code"] == -32602


def test_an_error_carries_its_data_only_where_there_is_some() -> None:
    assert WireError(1, "a").to_dict() == {"code": 1, "message": "a"}
    assert WireError(1, "a", {"b": 2}).to_dict() == {"code": 1, "message": "a", "data": {"b": 2}}
