"""How does a small process of ours start quickly? As a Python with nothing but one module of this folder in it.

It sees none of the environment, the user's site packages or the rest of the package: it needs none of them.
"""

import os
import sys

# Such a process needs none of the package but this folder: a package of that name is made up around it.
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
    """What runs `main` of the module with these numbers."""
    return [sys.executable, "-I", "-S", "-c", _BOOT.format(module=module), _PACKAGE, *map(str, descriptors)]
