"""Which tools work on files? All of them, in the order in which they are shown."""

from toolreeve.core.tool import FunctionTool
from toolreeve.tools.edit import CHANGING_TOOLS
from toolreeve.tools.files import READING_TOOLS
from toolreeve.tools.search import SEARCHING_TOOLS

FILE_TOOLS: tuple[FunctionTool, ...] = (*READING_TOOLS, *CHANGING_TOOLS, *SEARCHING_TOOLS)
