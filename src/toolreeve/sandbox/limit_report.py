"""Which limit ended it? Told by the kernel's own counts first, then by the signal, then by what the program said.

Only a program that failed met a limit; what it said counts only together with that.
"""

import signal
from typing import NamedTuple

from toolreeve.core.process import ProcessLimits

SHELL_BASE = 128


class LimitEvidence(NamedTuple):
    """`kind` is the slot's own finding, `memory` and `processes` are the control group's."""

    kind: bytes
    exit_code: int
    cpu_seconds: float
    stderr: bytes
    memory: bool
    processes: bool


def enforced(limits: ProcessLimits, evidence: LimitEvidence) -> str | None:
    """The limit by which the kernel or the slot ended something."""
    code = evidence.exit_code
    if evidence.memory or evidence.kind == b"M":
        return f"memory {limits.memory_mb} MB"
    if evidence.kind == b"C" or _died_of(code, signal.SIGXCPU) or (code and evidence.cpu_seconds >= limits.cpu_seconds):
        return f"CPU time {limits.cpu_seconds} s"
    if evidence.kind == b"P":
        return f"processes {limits.processes}"
    if _died_of(code, signal.SIGXFSZ):
        return f"file size {limits.file_size_mb} MB"
    return None


def met(limits: ProcessLimits, evidence: LimitEvidence) -> str | None:
    """The limit that a program which failed by itself ran into."""
    if not evidence.exit_code:
        return None
    said = evidence.stderr
    if evidence.processes or b"Resource temporarily unavailable" in said or b"can't start new thread" in said:
        return f"processes {limits.processes}"
    if b"Too many open files" in said:
        return f"open files {limits.open_files}"
    if b"File too large" in said or b"File size limit exceeded" in said:
        return f"file size {limits.file_size_mb} MB"
    if b"Cannot allocate memory" in said or b"MemoryError" in said or b"out of memory" in said:
        return f"memory {limits.memory_mb} MB"
    return None


def _died_of(code: int, number: signal.Signals) -> bool:
    """By itself, or as a child of a shell that tells so by its own exit code."""
    return code in (-number, SHELL_BASE + number)
