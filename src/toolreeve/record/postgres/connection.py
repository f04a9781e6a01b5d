"""PostgreSQL connections that give up in time and speak the tables' SQL."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from toolreeve.core.errors import ToolreeveError
from toolreeve.record.chain import Head, Line
from toolreeve.record.engine import StoreError
from toolreeve.record.postgres.schema import SCHEMA, migrate, quote_user, version
from toolreeve.record.sql.connection import Rows, Values

_OPTIONS = {
    "connect_timeout": 3,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,
    "application_name": "toolreeve",
}
_SETTINGS = f"-c search_path={SCHEMA} -c statement_timeout=30s -c lock_timeout=10s -c timezone=UTC"
_PLACEHOLDER = re.compile(r"(?<!:):(\w+)|\?|%")
CHANNEL = "toolreeve_"


def place_of(url: str) -> str:
    """The database in words, without its password. Raises ToolreeveError for a URL that is none."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error as problem:
        raise ToolreeveError(f"state.url is not a PostgreSQL URL: {one_line(problem)}. {_EXAMPLE}") from None
    host = parts.get("host") or parts.get("hostaddr") or "localhost"
    return f"postgresql://{host}:{parts.get('port') or 5432}/{parts.get('dbname') or parts.get('user') or ''}"


def options_of(url: str) -> dict[str, Any]:
    """How to connect: gives up in time, and adds to the options that the URL has."""
    return {**_OPTIONS, "options": f"{_SETTINGS} {conninfo_to_dict(url).get('options') or ''}", "autocommit": True}


def connect(url: str, **more: Any) -> psycopg.Connection:
    return psycopg.connect(url, **options_of(url), **more)


def prepare(url: str, place: str, *, read_only: bool) -> None:
    """Create or upgrade the schema; a reader only checks it. Raises StoreError."""
    try:
        with connect(url) as connection:
            if not read_only:
                migrate(connection, place)
            elif connection.execute("SELECT to_regclass('migrations')").fetchone() == (None,):
                raise StoreError(f"{place} holds no record yet: nothing has been recorded there")
            else:
                version(connection, place)
    except psycopg.OperationalError as problem:
        raise StoreError(
            f"{place} cannot be reached (check state.url and the server): {one_line(problem)}"
        ) from problem
    except psycopg.errors.InsufficientPrivilege as problem:
        remedy = (
            f"Grant it: `GRANT CREATE ON DATABASE …`, and the rights on schema {SCHEMA!r}, to the user of state.url"
        )
        raise StoreError(f"{place} refuses this user: {one_line(problem)}. {remedy}") from problem
    except psycopg.Error as problem:
        raise StoreError(f"{place} cannot be used: {one_line(problem)}") from problem


def one_line(problem: Exception) -> str:
    return " ".join(str(problem).split())[:300]


_EXAMPLE = "Example: postgresql://user@host/database (the password in ~/.pgpass or PGPASSWORD)"


@lru_cache(maxsize=1000)
def translate(statement: str) -> str:
    """`?` and `:name` become psycopg's placeholders, and the column `user` is quoted."""

    def replace(found: re.Match[str]) -> str:
        if found[0] == "%":
            return "%%"
        return "%s" if found[0] == "?" else f"%({found[1]})s"

    return _PLACEHOLDER.sub(replace, quote_user(statement))


class PostgresConnection:
    """The connection of one transaction (`record.sql.connection.SqlConnection`).

    `lines` and `head` are what was written to the record in it.
    """

    labels = "string_agg(DISTINCT CASE WHEN {} THEN convert_from(body, 'UTF8')::json ->> 'labels' END, ',')"

    def __init__(self, raw: psycopg.Connection) -> None:
        self.raw = raw
        self.lines: list[Line] = []
        self.head: Head | None = None

    def execute(self, statement: str, values: Values = (), /) -> Rows:
        return self.raw.execute(translate(statement), values)

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]], /) -> None:
        self.raw.cursor().executemany(translate(statement), rows)

    def lock(self, name: str) -> None:
        self.raw.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (name,))

    def announce(self, channel: str) -> None:
        self.raw.execute("SELECT pg_notify(%s, '')", (CHANNEL + channel,))
