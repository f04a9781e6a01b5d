"""Page cursors: opaque, and valid only for the list that issued them."""

import base64
import binascii

from toolreeve.serve.api.problems import Problem


def write_cursor(name: str, seq: int) -> str:
    return base64.urlsafe_b64encode(f"{name}:{seq}".encode()).decode().rstrip("=")


def read_cursor(name: str, cursor: str) -> int:
    """Raises Problem for a cursor of another list, and for what is no cursor."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        kind, _, seq = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii").partition(":")
        if kind != name or not seq.isascii() or not seq.isdigit() or len(seq) > 18:
            raise ValueError(cursor)
        return int(seq)
    except (ValueError, binascii.Error):
        detail = f"the cursor {cursor!r:.100} does not belong to this list; start again without it"
        raise Problem(422, detail) from None
