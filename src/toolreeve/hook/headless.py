"""Whether a person could answer questions of the client running this hook.

Gemini CLI without its screen waits for ever for an answer to `ask`. It says nothing about that to its hooks, so its own
process is looked at. Standard library only; where there is no /proc, a person is assumed.
"""

import os

MOST_ANCESTORS = 8
_ASKS = ("-i", "--prompt-interactive", "--acp", "--experimental-acp")
_ONE_SHOT = ("-p", "--prompt")


def is_headless(client: str, process: int | None = None) -> bool:
    """`process` is where the search for the client among its ancestors begins; by default our parent."""
    if client != "gemini":
        return False
    number = os.getppid() if process is None else process
    for _ in range(MOST_ANCESTORS):
        try:
            with open(f"/proc/{number}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace").split("\0")
            if any("gemini" in word.rpartition("/")[2] for word in words[:3]):
                return _is_one_shot(words, number)
            with open(f"/proc/{number}/stat", "rb") as file:
                number = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False


def _is_one_shot(words: list[str], number: int) -> bool:
    if any(word.partition("=")[0] in _ASKS for word in words):
        return False
    if any(word.partition("=")[0] in _ONE_SHOT for word in words):
        return True
    return not all(_is_terminal(f"/proc/{number}/fd/{stream}") for stream in (0, 1))


def _is_terminal(path: str) -> bool:
    try:
        return os.readlink(path).startswith(("/dev/pts/", "/dev/tty", "/dev/console"))  # noqa: PTH115
    except OSError:
        return True
