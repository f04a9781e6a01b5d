from toolreeve.agent.conversation import Conversation
from toolreeve.agent.messages import AssistantMessage, ToolAnswer, ToolMessage, UserMessage
from toolreeve.formats import ParsedCall


def turn(number: int, characters: int = 7000) -> tuple[AssistantMessage, ToolMessage]:
    asked = ParsedCall("read_file", {"path": f"{number}"}, f"id{number}")
    answer = ToolAnswer(id=f"id{number}", name="read_file", text=f"{number}" * characters, is_error=False)
    return AssistantMessage(text=f"reading {number}", calls=(asked,)), ToolMessage(answers=(answer,))


def long_conversation() -> Conversation:
    return Conversation([UserMessage(text="the question"), *(message for n in range(6) for message in turn(n))])


def test_compaction_shortens_old_results_and_keeps_everything_else() -> None:
    conversation = long_conversation()
    before = list(conversation.messages)

    shortened = conversation.compact(8_000)

    assert shortened == 3
    assert conversation.tokens() <= 8_000 * 0.8
    changed = [index for index, message in enumerate(conversation.messages) if message != before[index]]
    assert changed == [2, 4, 6]
    assert "Repeat the call" in str(conversation.messages[2])


def test_the_latest_results_stay_even_if_they_alone_are_too_long() -> None:
    conversation = long_conversation()

    conversation.compact(10)

    assert conversation.messages[-1] == turn(5)[1]
    assert conversation.messages[-3] == turn(4)[1]


def test_a_conversation_that_fits_is_left_alone() -> None:
    conversation = long_conversation()

    assert conversation.compact(1_000_000) == 0
