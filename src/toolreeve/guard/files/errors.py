"""File errors: messages and codes for every refused or failed path."""

import errno

from toolreeve.core.errors import ErrorCode, ToolError

_MAX_SHOWN = 200
_KNOWN = {
    errno.EACCES: (ErrorCode.PERMISSION, "The operating system refuses access to {path}"),
    errno.EPERM: (ErrorCode.PERMISSION, "The operating system refuses access to {path}"),
    errno.EROFS: (ErrorCode.PERMISSION, "{path} is on a read-only file system"),
    errno.ENAMETOOLONG: (ErrorCode.INVALID_PATH, "The path is too long: {path}"),
    errno.ENXIO: (ErrorCode.INVALID_PATH, "{path} is not a regular file"),
    errno.ENOENT: (ErrorCode.PATH_NOT_FOUND, "Path not found: {path}"),
}


def display_path(path: str) -> str:
    if not path.isprintable():
        path = repr(path)
    return path if len(path) <= _MAX_SHOWN else f"{path[:_MAX_SHOWN]}… ({len(path)} characters)"


def forbidden(path: str, reason: str) -> ToolError:
    return ToolError(ErrorCode.PATH_FORBIDDEN, f"{display_path(path)}: {reason}")


def invalid(path: str, reason: str) -> ToolError:
    return ToolError(ErrorCode.INVALID_PATH, f"{display_path(path)}: {reason}")


def missing_file(path: str) -> ToolError:
    return ToolError(ErrorCode.FILE_NOT_FOUND, f"File not found: {display_path(path)}", detail={"path": path})


def missing_directory(directory: str, path: str) -> ToolError:
    return ToolError(ErrorCode.DIR_NOT_FOUND, f"Directory not found: {display_path(directory)}", detail={"path": path})


def not_a_directory(directory: str, path: str) -> ToolError:
    return ToolError(ErrorCode.DIR_NOT_FOUND, f"Not a directory: {display_path(directory)}", detail={"path": path})


def failed(code: ErrorCode, path: str, reason: str) -> ToolError:
    """A failure that a retry would not fix."""
    return ToolError(code, f"{display_path(path)}: {reason}", retryable=False)


def from_system(problem: OSError, path: str, otherwise: ErrorCode) -> ToolError:
    """The error of the operating system as a tool error; `otherwise` is the code for errors not listed above."""
    if known := _KNOWN.get(problem.errno or 0):
        code, text = known
        return ToolError(code, text.format(path=display_path(path)))
    return ToolError(otherwise, f"{display_path(path)}: {problem.strerror or problem}")
