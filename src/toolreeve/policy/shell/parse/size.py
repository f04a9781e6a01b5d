"""Size limits: which commands are too costly to parse.

Short commands are always parsed. Long ones are parsed if their length is mostly text: a command of many different parts
is a program, and counts as not known.
"""

from toolreeve.policy.shell.parse.lexemes import QUOTED

LONGEST_PROGRAM = 2_000
"""The longest program in another language (sed, awk, SQL) that is read inside a word, in characters."""
HEAVIEST_PLAIN = 300
HEAVIEST = 120
"""The largest weight of a plain command, and of any other, which takes several times as long to parse."""
SHORT = 4_096
_COMMAND = 8
_EXPANSION = 2
"""The weight of each distinct command, and of each expansion in it."""
_WORDS = 3
_QUOTES = 8
_ESCAPES = 4
_REPEATED = 2
"""How many words, quotes, backslashes and repeated commands weigh one."""
CHARACTERS = 80
"""How many characters weigh one to the grammar, which looks at each of them."""
_EXPANDING = "$*?[{`(<>~\\"


def weigh(text: str) -> int:
    """The weight of the text without its heredocs."""
    bare, quotes = QUOTED.subn("_", text) if "'" in text or '"' in text else (text, 0)
    commands = bare.replace("|", "\n").replace(";", "\n").replace("&", "\n").split("\n")
    different = set(commands)
    once = " ".join(different)
    expansions = sum(map(once.count, _EXPANDING)) + once.count("://")
    weight = _COMMAND * len(different) + _EXPANSION * expansions
    weight += quotes // _QUOTES + text.count("\\") // _ESCAPES
    return weight + len(once.split()) // _WORDS + len(commands) // _REPEATED
