"""Is a command too much to be read in no time? It is weighed before it is looked at closely.

A short one is always read. A long one is read if it is long by its text: one that is made of many different parts is
a program, and what it would do is not known.
"""

from toolreeve.policy.shell.parse.lexemes import QUOTED

LONGEST_PROGRAM = 2_000
"""Characters of a language inside a word, each of which is looked at."""
HEAVIEST_PLAIN, HEAVIEST = 300, 120
"""What a plain command may weigh, and what any other may, which takes several times as long."""
SHORT = 4_096
_COMMAND, _HOLE = 8, 2
"""What a command weighs that no other is equal to, and what a hole in its words does."""
_WORDS, _QUOTES, _ESCAPES, _REPEATED = 3, 8, 4, 2
"""How many words weigh one, how many quotes, backslashes, and commands that are read already."""
CHARACTERS = 80
"""How many weigh one to the grammar, which looks at each of them."""
_HOLES = "$*?[{`(<>~\\"


def weigh(text: str) -> int:
    """Of the text without its heredocs."""
    bare, quotes = QUOTED.subn("_", text) if "'" in text or '"' in text else (text, 0)
    commands = bare.replace("|", "\n").replace(";", "\n").replace("&", "\n").split("\n")
    different = set(commands)
    once = " ".join(different)
    weight = _COMMAND * len(different) + _HOLE * (sum(map(once.count, _HOLES)) + once.count("://")) + quotes // _QUOTES
    weight += text.count("\\") // _ESCAPES
    return weight + len(once.split()) // _WORDS + len(commands) // _REPEATED
