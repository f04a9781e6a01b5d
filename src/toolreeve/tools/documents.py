"""Text of Word and PDF documents, bounded against hostile files."""

import io
from collections.abc import Iterator
from typing import Any

from toolreeve.core.errors import ErrorCode, ToolError

MAX_DOCUMENT = 64 * 1024 * 1024
MAX_UNPACKED = 128 * 1024 * 1024
MAX_TEXT = 16 * 1024 * 1024
MAX_PARTS = 10_000


def read_document(data: bytes, path: str) -> str | None:
    """The text of a document, or None when the file name is not one of a document."""
    kind = path[-5:].lower()
    try:
        if kind.endswith(".docx"):
            return _read_docx(data, path)
        return _read_pdf(data, path) if kind.endswith(".pdf") else None
    except ModuleNotFoundError as problem:
        message = f"{path} cannot be read: the package {problem.name} is not installed"
        hint = "pip install 'toolreeve[documents]'"
        raise ToolError(ErrorCode.READ_ERROR, message, suggestions=(hint,), retryable=False) from None


def is_document(path: str) -> bool:
    return path[-5:].lower().endswith((".docx", ".pdf"))


def _read_docx(data: bytes, path: str) -> str:
    import zipfile

    from docx import Document
    from docx.opc.exceptions import PackageNotFoundError

    try:
        _require_harmless(data, path)
        document = Document(io.BytesIO(data))
        return _joined(_docx_lines(document), path)
    except ToolError:
        raise
    except (PackageNotFoundError, zipfile.BadZipFile, KeyError, ValueError, SyntaxError) as problem:
        raise _unreadable(path, f"is not a readable Word document: {problem}") from None


def _require_harmless(data: bytes, path: str) -> None:
    """Refuse an archive that unpacks to too much. The declared sizes are binding: the reader stops there."""
    from zipfile import ZipFile

    parts = ZipFile(io.BytesIO(data)).infolist()
    unpacked = sum(part.file_size for part in parts)
    if unpacked > MAX_UNPACKED or len(parts) > MAX_PARTS:
        raise _unreadable(path, f"unpacks to {unpacked} bytes in {len(parts)} parts, more than is safe to open")


def _docx_lines(container: Any) -> Iterator[str]:
    from docx.table import Table

    for block in container.iter_inner_content():
        if isinstance(block, Table):
            for row in block.rows:
                yield "\t".join(cell.text.replace("\n", " ") for cell in row.cells)
        else:
            yield block.text


def _read_pdf(data: bytes, path: str) -> str:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise _unreadable(path, "is encrypted; a password is needed to read it")
        return _joined((page.extract_text() for page in reader.pages), path)
    except DependencyError as problem:
        raise _unreadable(path, f"is encrypted in a way that needs another package: {problem}") from None
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as problem:
        raise _unreadable(path, f"is not a readable PDF: {problem}") from None


def _joined(pieces: Iterator[str], path: str) -> str:
    found: list[str] = []
    size = 0
    for piece in pieces:
        found.append(piece)
        size += len(piece)
        if size > MAX_TEXT:
            raise _unreadable(path, f"contains more than {MAX_TEXT // 1024 // 1024} MB of text")
    return "\n".join(found)


def _unreadable(path: str, reason: str) -> ToolError:
    return ToolError(ErrorCode.READ_ERROR, f"{path} {reason}", retryable=False)
