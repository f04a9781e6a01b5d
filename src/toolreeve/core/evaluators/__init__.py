"""Evaluators: which programs take words, input, files or variables as code.

Pure data. Not a list of what may run: it says where a value would be more than data. What is not known to be harmless
in a listed program counts as code.
"""

from toolreeve.core.evaluators.beside import CODE_FILES, COMPILERS, COPIERS, OBEYS_FOLDER, VARIABLES, WRITERS
from toolreeve.core.evaluators.languages import AWKS, INTERPRETERS, JQS, MODULES, SEDS, SQL_DIALECTS, Interpreter
from toolreeve.core.evaluators.names import find_beginning, plain_name
from toolreeve.core.evaluators.ordinary import CODE_LETTERS, DATA, OPTION_NAMES
from toolreeve.core.evaluators.runners import RUNNERS, Runner
from toolreeve.core.evaluators.shells import BUILTINS, FOREIGN_SHELLS, JOINING, SHELLS
from toolreeve.core.evaluators.wrappers import LAUNCHERS, WRAPPERS, Wrapper

__all__ = [
    "AWKS",
    "BUILTINS",
    "CODE_FILES",
    "CODE_LETTERS",
    "COMPILERS",
    "COPIERS",
    "DATA",
    "FOREIGN_SHELLS",
    "INTERPRETERS",
    "JOINING",
    "JQS",
    "LAUNCHERS",
    "MODULES",
    "OBEYS_FOLDER",
    "OPTION_NAMES",
    "RUNNERS",
    "SEDS",
    "SHELLS",
    "SQL_DIALECTS",
    "VARIABLES",
    "WRAPPERS",
    "WRITERS",
    "Interpreter",
    "Runner",
    "Wrapper",
    "find_beginning",
    "plain_name",
]
