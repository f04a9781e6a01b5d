"""Which limit stopped a command: counters, signal, then stderr.

Only a command that failed reached a limit; its stderr counts only together with that.
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
    """The limit by which the kernel or the slot killed something, as a message."""
    code = evidence.exit_code
    if evidence.memory:
        return _memory(limits)
    if found := killed_for(evidence.kind, limits):
        return found
    if _died_of(code, signal.SIGXCPU) or (code and evidence.cpu_seconds >= limits.cpu_seconds):
        return _cpu_time(limits)
    if _died_of(code, signal.SIGXFSZ):
        return _file_size(limits)
    return None


def killed_for(kind: bytes, limits: ProcessLimits) -> str | None:
    """The limit by which the slot killed a command, from the kind of its report."""
    match kind:
        case b"M":
            return _memory(limits)
        case b"C":
            return _cpu_time(limits)
        case b"P":
            return _processes(limits)
        case _:
            return None


def suspected(limits: ProcessLimits, evidence: LimitEvidence) -> str | None:
    """The limit that a command which failed by itself ran into, as a message."""
    if not evidence.exit_code:
        return None
    stderr = evidence.stderr
    if evidence.processes or b"Resource temporarily unavailable" in stderr or b"can't start new thread" in stderr:
        return _processes(limits)
    if b"Too many open files" in stderr:
        return _reached(f"{limits.open_files} open files", limits.settings.open_files)
    if b"File too large" in stderr or b"File size limit exceeded" in stderr:
        return _file_size(limits)
    if b"Cannot allocate memory" in stderr or b"MemoryError" in stderr or b"out of memory" in stderr:
        return _memory(limits)
    return None


def _memory(limits: ProcessLimits) -> str:
    return _reached(f"{limits.memory_mb} MB of memory", limits.settings.memory_mb)


def _cpu_time(limits: ProcessLimits) -> str:
    return _reached(f"{limits.cpu_seconds} s of CPU time", limits.settings.cpu_seconds)


def _processes(limits: ProcessLimits) -> str:
    return _reached(f"{limits.processes} processes", limits.settings.processes)


def _file_size(limits: ProcessLimits) -> str:
    return _reached(f"{limits.file_size_mb} MB per file", limits.settings.file_size_mb)


def _reached(amount: str, setting: str) -> str:
    message = f"stopped: limit of {amount} reached"
    return f"{message} ({setting})" if setting else message


def _died_of(code: int, number: signal.Signals) -> bool:
    """By itself, or as a child of a shell that reports it by its own exit code."""
    return code in (-number, SHELL_BASE + number)
