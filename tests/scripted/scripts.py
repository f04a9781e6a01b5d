"""Runs rendered scripts in bash, with the values on a descriptor, as the sandbox does."""

import os
import subprocess
from collections.abc import Mapping
from typing import Any

from toolreeve.scripted.shebang import PREAMBLE, VALUES
from toolreeve.scripted.template import ValueRules, compile_script


def run(source: str, args: Mapping[str, Any], **terms: ValueRules) -> str:
    """What the script prints, both streams together."""
    rendered = compile_script(source, terms).render(args)
    held = os.memfd_create("values")
    try:
        os.write(held, rendered.data())
        os.lseek(held, 0, os.SEEK_SET)
        ended = subprocess.run(
            ["bash", "-c", PREAMBLE + rendered.script, "test"],
            pass_fds=[held],
            env={VALUES: f"/dev/fd/{held}", "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=20,
        )
    finally:
        os.close(held)
    return ended.stdout.decode(errors="surrogateescape")
