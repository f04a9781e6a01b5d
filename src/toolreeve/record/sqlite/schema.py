"""Database migrations, applied once each, in order.

None is ever edited after a release.
"""

from collections.abc import Mapping

from toolreeve.record.audit import BLOCK_BITS

_FIELD = """
    ALTER TABLE audit ADD COLUMN {name} GENERATED ALWAYS AS (
        CASE WHEN json_valid(CAST(body AS TEXT)) THEN json_extract(CAST(body AS TEXT), '$.{name}') END
    ) VIRTUAL;
"""
_COMPUTED = ("tool", "session", "user", "workspace", "code", "success")
INDEXED = ("kind", *_COMPUTED)
FREQUENT: Mapping[str, str | int] = {"kind": "call", "code": "", "success": 1}
"""What most records hold: it is not indexed, for it is found without."""
INDEX_BOUNDS = {name: f"{name} <> {value!r}" for name, value in FREQUENT.items()}
_FILTERS = "".join(_FIELD.format(name=name) for name in ("ts", *_COMPUTED)) + "".join(
    f"CREATE INDEX audit_{name} ON audit ({name}){f' WHERE {INDEX_BOUNDS[name]}' if name in INDEX_BOUNDS else ''};"
    for name in INDEXED
)

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE audit (
        seq      INTEGER PRIMARY KEY,
        call_id  TEXT NOT NULL,
        kind     TEXT NOT NULL,
        body     BLOB NOT NULL,
        hash     BLOB NOT NULL
    );
    CREATE INDEX audit_call ON audit (call_id);
    CREATE TABLE checkpoint (
        id   INTEGER PRIMARY KEY CHECK (id = 1),
        seq  INTEGER NOT NULL,
        hash BLOB NOT NULL
    );
    INSERT INTO checkpoint VALUES (1, 0, zeroblob(32));
    CREATE TABLE undo (
        id       INTEGER PRIMARY KEY,
        call_id  TEXT NOT NULL,
        session  TEXT NOT NULL,
        at       REAL NOT NULL,
        change   BLOB NOT NULL,
        undone   INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX undo_call ON undo (call_id);
    CREATE INDEX undo_session ON undo (session);
    CREATE TABLE budget (
        scope TEXT PRIMARY KEY,
        spent INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE rate (
        key   TEXT PRIMARY KEY,
        state BLOB NOT NULL
    );
    CREATE TABLE grants (
        id      TEXT PRIMARY KEY,
        scope   TEXT NOT NULL,
        body    BLOB NOT NULL
    );
    """,
    """
    CREATE TABLE pins (
        server     TEXT NOT NULL,
        place      TEXT NOT NULL,
        tool       TEXT NOT NULL,
        digest     BLOB NOT NULL,
        definition BLOB NOT NULL,
        offered    BLOB,
        PRIMARY KEY (server, place, tool)
    );
    """,
    """
    CREATE TABLE approvals (
        id       TEXT PRIMARY KEY,
        binding  TEXT NOT NULL,
        holder   TEXT NOT NULL,
        tool     TEXT NOT NULL,
        asked    REAL NOT NULL,
        expires  REAL NOT NULL,
        state    TEXT NOT NULL,
        question BLOB NOT NULL,
        answer   BLOB
    );
    CREATE INDEX approvals_binding ON approvals (binding, holder);
    CREATE TABLE spent_states (
        nonce TEXT PRIMARY KEY,
        until REAL NOT NULL
    );
    """,
    """
    CREATE TABLE witness (
        id       INTEGER PRIMARY KEY CHECK (id = 1),
        identity BLOB NOT NULL,
        since    INTEGER,
        synced   INTEGER NOT NULL DEFAULT 0
    );
    INSERT INTO witness (id, identity) VALUES (1, randomblob(16));
    """,
    """
    DROP TABLE grants;
    CREATE TABLE grants (
        id         TEXT PRIMARY KEY,
        scope      TEXT NOT NULL,
        user       TEXT NOT NULL,
        client     TEXT NOT NULL,
        session    TEXT NOT NULL,
        tool       TEXT NOT NULL,
        digest     TEXT NOT NULL,
        covers     BLOB NOT NULL,
        granted_by TEXT NOT NULL,
        granted_at REAL NOT NULL,
        expires    REAL,
        uses       INTEGER,
        UNIQUE (tool, user, session, client, scope, digest)
    );
    CREATE INDEX grants_user ON grants (user, granted_at);
    """,
    """
    ALTER TABLE undo ADD COLUMN user TEXT NOT NULL DEFAULT '';
    ALTER TABLE undo ADD COLUMN owner TEXT NOT NULL DEFAULT '';
    UPDATE undo SET owner = session;
    """,
    f"""
    {_FILTERS}
    CREATE INDEX audit_time ON audit (seq >> {BLOCK_BITS}, ts)
    """,
    """
    CREATE TABLE agent_runs (
        id        TEXT PRIMARY KEY,
        user      TEXT NOT NULL,
        workspace TEXT NOT NULL,
        session   TEXT NOT NULL,
        model     TEXT NOT NULL,
        question  TEXT NOT NULL,
        began     REAL NOT NULL,
        ended     REAL,
        stop      TEXT NOT NULL DEFAULT '',
        steps     INTEGER NOT NULL DEFAULT 0,
        cost      REAL NOT NULL DEFAULT 0
    );
    CREATE INDEX agent_runs_user ON agent_runs (user, began);
    CREATE TABLE agent_messages (
        run    TEXT NOT NULL,
        number INTEGER NOT NULL,
        body   BLOB NOT NULL,
        PRIMARY KEY (run, number)
    );
    """,
    """
    ALTER TABLE grants ADD COLUMN process TEXT NOT NULL DEFAULT ''
    """,
    """
    CREATE TABLE flow_facts (
        id        TEXT PRIMARY KEY,
        kind      TEXT NOT NULL,
        user      TEXT NOT NULL,
        session   TEXT NOT NULL,
        tool      TEXT NOT NULL,
        parameter TEXT NOT NULL,
        value     TEXT NOT NULL,
        by        TEXT NOT NULL,
        at        REAL NOT NULL,
        expires   REAL
    );
    CREATE INDEX flow_facts_user ON flow_facts (user, session, at);
    CREATE TABLE content_labels (
        digest          TEXT PRIMARY KEY,
        integrity       TEXT NOT NULL,
        confidentiality TEXT NOT NULL,
        call_id         TEXT NOT NULL,
        at              REAL NOT NULL
    );
    CREATE INDEX content_labels_at ON content_labels (at)
    """,
    """
    CREATE TABLE credentials (
        id      TEXT PRIMARY KEY,
        kind    TEXT NOT NULL,
        digest  BLOB NOT NULL UNIQUE,
        name    TEXT NOT NULL,
        user    TEXT NOT NULL,
        role    TEXT NOT NULL,
        scopes  BLOB NOT NULL,
        tools   BLOB NOT NULL,
        created REAL NOT NULL,
        expires REAL
    )
    """,
    """
    ALTER TABLE approvals ADD COLUMN digest TEXT NOT NULL DEFAULT '';
    ALTER TABLE approvals ADD COLUMN process TEXT NOT NULL DEFAULT '';
    ALTER TABLE approvals ADD COLUMN shown REAL;
    ALTER TABLE approvals ADD COLUMN summary BLOB NOT NULL DEFAULT '{}';
    ALTER TABLE approvals ADD COLUMN votes BLOB NOT NULL DEFAULT '[]';
    ALTER TABLE approvals ADD COLUMN feedback BLOB NOT NULL DEFAULT '[]';
    ALTER TABLE approvals ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX approvals_asked ON approvals (asked, id);
    CREATE INDEX approvals_state ON approvals (state, asked, id);
    CREATE INDEX approvals_expires ON approvals (expires);
    CREATE INDEX approvals_changed ON approvals (changed);
    """,
    """
    CREATE TABLE webhooks (
        id          TEXT PRIMARY KEY,
        body        BLOB NOT NULL,
        created     REAL NOT NULL,
        delivered   INTEGER NOT NULL DEFAULT 0,
        failed      INTEGER NOT NULL DEFAULT 0,
        last_status INTEGER,
        last_at     REAL
    );
    CREATE TABLE webhook_cursors (
        source TEXT PRIMARY KEY,
        place  INTEGER NOT NULL
    );
    CREATE TABLE deliveries (
        id       INTEGER PRIMARY KEY AUTOINCREMENT,
        webhook  TEXT NOT NULL,
        event_id TEXT NOT NULL,
        task     TEXT NOT NULL,
        body     BLOB NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        state    TEXT NOT NULL DEFAULT 'pending',
        problem  TEXT NOT NULL DEFAULT '',
        due      REAL NOT NULL,
        created  REAL NOT NULL
    );
    CREATE INDEX deliveries_due ON deliveries (webhook, state, task, id)
    """,
    """
    CREATE INDEX approvals_overdue ON approvals (expires) WHERE state IN ('pending', 'allowed', 'edited', 'denied');
    """,
    """
    CREATE INDEX approvals_expiry ON approvals (state, expires)
    """,
    """
    CREATE TABLE tasks (
        id       TEXT PRIMARY KEY,
        owner    TEXT NOT NULL,
        created  REAL NOT NULL,
        context  TEXT NOT NULL,
        state    TEXT NOT NULL,
        body     BLOB NOT NULL,
        turn     BLOB NOT NULL,
        last     INTEGER NOT NULL,
        question TEXT NOT NULL,
        process  TEXT NOT NULL,
        ended    INTEGER NOT NULL,
        changed  REAL NOT NULL
    );
    CREATE INDEX tasks_owner ON tasks (owner, changed, id);
    CREATE INDEX tasks_question ON tasks (question) WHERE question != '';
    CREATE INDEX tasks_unended ON tasks (created, id) WHERE ended = 0;
    CREATE TABLE task_events (
        task   TEXT NOT NULL,
        number INTEGER NOT NULL,
        body   BLOB NOT NULL,
        PRIMARY KEY (task, number)
    ) WITHOUT ROWID
    """,
)
