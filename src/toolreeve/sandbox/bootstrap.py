"""Command line of a small process that runs one of our modules.

It sees none of the environment, the user's site packages or the rest of the package: it needs none of them.
"""

import os
import sys

# A stand-in for the package `toolreeve`, so that its `__init__` and all it imports stay unloaded.
_BOOT = """
import sys, types
package = types.ModuleType("toolreeve")
package.__path__ = [sys.argv[1]]
sys.modules["toolreeve"] = package
from toolreeve.sandbox.{module} import main
main(*map(int, sys.argv[2:]))
"""
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def small_python(module: str, *descriptors: int) -> list[str]:
    """The command line that calls the module's `main` with these descriptors."""
    return [sys.executable, "-I", "-S", "-c", _BOOT.format(module=module), _PACKAGE, *map(str, descriptors)]
