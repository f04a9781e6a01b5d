"""How is a refused or failed path told? One place for the words and codes of everything that goes wrong with files."""

import errno

from toolreeve.core.errors import ErrorCode, ToolError

_LONGEST_SHOWN = 200
_WHAT = {
    errno.EACCES: (ErrorCode.PERMISSION, "The operating system refuses access to {path}"),
    errno.EPERM: (ErrorCode.PERMISSION, "The operating system refuses access to {path}"),
    errno.EROFS: (ErrorCode.PERMISSION, "{path} lies on a read-only file system"),
    errno.ENAMETOOLONG: (ErrorCode.INVALID_PATH, "The path is too long: {path}"),
    errno.ENXIO: (ErrorCode.INVALID_PATH, "{path} is not a regular file"),
    errno.ENOENT: (ErrorCode.PATH_NOT_FOUND, "Path not found: {path}"),
}


def shown(path: str) -> str:
    if not path.isprintable():
        path = repr(path)
    return path if len(path) <= _LONGEST_SHOWN else f"{path[:_LONGEST_SHOWN]}… ({len(path)} characters)"


def forbidden(path: str, reason: str) -> ToolError:
    return ToolError(ErrorCode.PATH_FORBIDDEN, f"{shown(path)}: {reason}")


def invalid(path: str, reason: str) -> ToolError:
    return ToolError(ErrorCode.INVALID_PATH, f"{shown(path)}: {reason}")


def missing_file(path: str) -> ToolError:
    return ToolError(ErrorCode.FILE_NOT_FOUND, f"File not found: {shown(path)}", detail={"path": path})


def missing_directory(directory: str, path: str) -> ToolError:
    return ToolError(ErrorCode.DIR_NOT_FOUND, f"Directory not found: {shown(directory)}", detail={"path": path})


def not_a_directory(directory: str, path: str) -> ToolError:
    return ToolError(ErrorCode.DIR_NOT_FOUND, f"Not a directory: {shown(directory)}", detail={"path": path})


def failed(code: ErrorCode, path: str, reason: str) -> ToolError:
    """A failure that trying again would not mend."""
    return ToolError(code, f"{shown(path)}: {reason}", retryable=False)


def from_system(problem: OSError, path: str, otherwise: ErrorCode) -> ToolError:
    """What the operating system said, as a failure; `otherwise` is the code of what it names no better."""
    if known := _WHAT.get(problem.errno or 0):
        code, text = known
        return ToolError(code, text.format(path=shown(path)))
    return ToolError(otherwise, f"{shown(path)}: {problem.strerror or problem}")
