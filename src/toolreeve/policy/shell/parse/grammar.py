"""Parser entry point: a command as the closed forms of `syntax`.

Never guess: what is outside those forms, or cannot be read with certainty, is `Opaque`.
"""

import re
from collections.abc import Mapping

from toolreeve.policy.shell.parse import compounds, redirects, simple
from toolreeve.policy.shell.parse.heredocs import mask_heredocs, remove_heredocs
from toolreeve.policy.shell.parse.plain import plain
from toolreeve.policy.shell.parse.scanner import Unreadable
from toolreeve.policy.shell.parse.size import CHARACTERS, HEAVIEST, HEAVIEST_PLAIN, SHORT, weigh
from toolreeve.policy.shell.parse.syntax import Opaque, ShellScript, Step
from toolreeve.policy.shell.parse.tree import Form, TreeReader

LONGEST_BYTES = 64 * 1024
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f\x80-\xa0\xad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff\ud800-\udfff]"
)
_JOINED_LINES = re.compile(r"(?<![ \t\n])\\\n|\\[ \t]\\\n|#[^\n]*\\\n")

FORMS: Mapping[str, Form] = {
    "command": simple.command,
    "variable_assignment": simple.bare_assignments,
    "variable_assignments": simple.bare_assignments,
    "declaration_command": simple.declaration,
    "unset_command": simple.unset,
    "redirected_statement": redirects.redirected,
    "pipeline": compounds.pipeline,
    "list": compounds.listed,
    "subshell": compounds.group,
    "compound_statement": compounds.group,
    "negated_command": compounds.negated,
    "for_statement": compounds.loop,
    "while_statement": compounds.loop,
    "if_statement": compounds.branch,
    "case_statement": compounds.case,
    "test_command": compounds.test,
}


def parse(command: str, *, short: int = SHORT) -> ShellScript:
    """The parsed command; one that cannot be read at all is a script of one `Opaque`. Up to `short` characters are
    parsed without a size check."""
    try:
        _check(command)
        text = remove_heredocs(command) if "<<" in command else command
        weight = weigh(text) if len(command) > short else 0
        script = plain(text) if weight <= HEAVIEST_PLAIN else None
        if script is None and weight and weight + len(text) // CHARACTERS > HEAVIEST:
            raise Unreadable("too much in one command to be read with certainty")
        return script or TreeReader(mask_heredocs(text), FORMS).script()
    except Unreadable as problem:
        return ShellScript((Step(Opaque(str(problem), command), ";"),))
    except RecursionError:
        return ShellScript((Step(Opaque("nested too deeply", command), ";"),))


def _check(command: str) -> None:
    if len(command) > LONGEST_BYTES:
        raise Unreadable("longer than 64 KB")
    if _UNSEEN.search(command):
        raise Unreadable("a control or invisible character")
    if "\\\n" in command and _JOINED_LINES.search(command):
        raise Unreadable("a line continued in the middle of a word")
