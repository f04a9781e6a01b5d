"""Ordinary tool output from any machine: code, lists, digests, logs. It holds no secrets."""

import base64
import hashlib
import importlib.metadata
import json
import random
import sysconfig
import uuid
from collections.abc import Iterator
from pathlib import Path

MODULES = (
    "argparse ast base64 calendar collections/__init__ configparser copy csv dataclasses datetime decimal difflib dis"
    " doctest email/message enum fractions ftplib functools getpass hashlib heapq hmac http/client imaplib inspect"
    " ipaddress json/decoder locale logging/__init__ mailbox netrc os pathlib pickle platform poplib pprint pydoc"
    " random secrets shlex shutil smtplib socket ssl statistics string subprocess tarfile tempfile textwrap threading"
    " token tokenize traceback typing unittest/mock urllib/parse urllib/request uuid venv/__init__ zipfile"
).split()


def sources() -> Iterator[str]:
    folder = Path(sysconfig.get_paths()["stdlib"])
    for name in MODULES:
        path = folder / f"{name}.py"
        if path.exists():
            yield path.read_text()


def metadata() -> Iterator[str]:
    for found in importlib.metadata.distributions():
        yield found.read_text("METADATA") or ""
        yield found.read_text("RECORD") or ""


def printed(dice: random.Random) -> Iterator[str]:
    """What commands print: listings, digests, lock files, images, logs, results of tests."""
    for number in range(400):
        body = dice.randbytes(64)
        digest = hashlib.sha256(body).hexdigest()
        name = f"src/module_{number}/file-{number}.py"
        yield f"-rw-r--r-- 1 ada staff {dice.randrange(10**6):8} Nov 16 10:{number % 60:02} {name}"
        yield f"{digest}  {name}"
        yield f"{hashlib.sha1(body).hexdigest()} refs/heads/topic-{number}"
        yield f"commit {digest[:40]}\nAuthor: Ada <ada@example.com>\n\n    Mend the key handling of tokens ({number})"
        yield f'      "integrity": "sha512-{base64.b64encode(body).decode()}",'
        yield f'    "node_modules/pkg-{number}": {{"resolved": "https://r.example/p-{number}.tgz"}},'
        yield f"    --hash=sha256:{digest}"
        yield f"{uuid.UUID(bytes=body[:16])} {uuid.UUID(bytes=body[16:32])}"
        yield f'<img src="data:image/png;base64,{base64.b64encode(dice.randbytes(300)).decode()}">'
        yield f"2026-11-16T10:00:00Z INFO worker {number} took 7 ms tokens=4096 key_count={number}"
        yield f"tests/unit/test_auth_tokens.py::test_password_is_checked[{number}] PASSED [ {number % 100:2}%]"
        yield f"{name}:{number}:12: warning: unused variable 'token_{number}' [-Wunused-variable]"
        yield f"https://example.com/a/{number}?page={number}&sort=name#section-{number} and mail ada@example.com"
        yield f"  image: registry.example/team/app@sha256:{digest}"
        yield f"  primary_key: true\n  foreign-key: users.id\n  key: item-{number}\n  author: Ada Lovelace"
        yield f"ssh-ed25519 {base64.b64encode(body[:51]).decode()} ada@host-{number}"
        yield f"{number:08x}  {' '.join(f'{byte:02x}' for byte in body[:16])}  |................|"
        yield f"PATH=/usr/bin:/bin PWD=/home/ada/project-{number} LANG=C.UTF-8"
        yield json.dumps({"id": number, "sha": digest, "usage": {"max_tokens": 4096, "total_tokens": number}})


def lines() -> Iterator[str]:
    for text in (*sources(), *metadata(), *printed(random.Random(3))):
        yield from text.splitlines()
