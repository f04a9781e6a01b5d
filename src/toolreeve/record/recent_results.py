"""Results of recent calls, in memory: the record keeps only their size.

Bounded in number and in bytes; a result that is too large is not kept. Secrets are redacted first.
"""

import threading
from collections import OrderedDict
from typing import Any

from toolreeve.core import json
from toolreeve.core.entry import Entry
from toolreeve.core.result import Failure, Success, new_result
from toolreeve.core.secrets.redactor import Redactor

MOST = 1_000
MOST_BYTES = 16 * 1024 * 1024
LARGEST = 1024 * 1024


class RecentResults:
    def __init__(self, redactor: Redactor, *, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._redactor = redactor
        self._most = most
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def add(self, entry: Entry, outcome: Success | Failure) -> None:
        try:
            body = json.dumps(new_result(outcome, entry.meta).to_dict())
        except TypeError:
            return  # a value without a JSON form
        if len(body) > LARGEST:
            return
        with self._lock:
            self._kept[entry.call.id] = body
            self._bytes += len(body)
            while len(self._kept) > self._most or self._bytes > self._most_bytes:
                _, dropped = self._kept.popitem(last=False)
                self._bytes -= len(dropped)

    def get(self, call_id: str) -> dict[str, Any] | None:
        with self._lock:
            found = self._kept.get(call_id)
        if found is None:
            return None
        redacted: dict[str, Any] = self._redactor.value(json.loads(found))
        return redacted
