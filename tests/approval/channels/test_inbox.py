"""The console's channel: available while somebody watches, and never an answer of its own."""

from toolreeve.approval.channels.inbox import InboxChannel


def test_it_is_available_while_somebody_watches() -> None:
    channel = InboxChannel()
    found = [channel.available()]
    with channel.watched():
        with channel.watched():
            found.append(channel.available())
        found.append(channel.available())
    found.append(channel.available())

    assert found == [False, True, True, False]
