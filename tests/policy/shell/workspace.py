"""One place for all tests of the shell analysis: a workspace at /project, a home at /home/me."""

from toolreeve.core.effects import EffectKind
from toolreeve.core.verdict import Decision
from toolreeve.policy.shell.analysis import Analysis, analyse, decide_default


def analysed(command: str, *, cwd: str = "/project") -> Analysis:
    return analyse(command, cwd=cwd, home="/home/me", root="/project")


def runs_unasked(command: str) -> bool:
    return decide_default(analysed(command)).decision is Decision.ALLOW


def effects(command: str) -> list[str]:
    """The effects as text, without what was executed."""
    return [str(effect) for effect in analysed(command).effects if effect.kind != "exec"]


def touches(command: str, kind: EffectKind, path: str) -> bool:
    return any(effect.kind is kind and effect.touches(path) for effect in analysed(command).effects)


def reads(command: str, path: str = "/project/books/plan.hush") -> bool:
    return touches(command, EffectKind.READ, path)


def writes(command: str, path: str) -> bool:
    return touches(command, EffectKind.WRITE, path)
