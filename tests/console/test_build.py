"""The built console: small enough, and its types are those of the API."""

import gzip
import re
import subprocess
from pathlib import Path

import toolreeve

ROOT = Path(__file__).parents[2]
BUILT = Path(toolreeve.__file__).parent / "console"
MOST_BYTES = 700_000
MOST_FIRST_BYTES = 200_000


def compressed(path: Path) -> int:
    """Fonts are compressed already."""
    data = path.read_bytes()
    return len(data) if path.suffix == ".woff2" else len(gzip.compress(data))


def first_view() -> set[Path]:
    """What the first page loads: its scripts, styles and fonts, and what they import at once."""
    html = (BUILT / "index.html").read_text()
    named = {BUILT / name.lstrip("/") for name in re.findall(r'(?:src|href)="(/[^"]+)"', html)}
    found = {BUILT / "index.html", *named, *BUILT.glob("assets/*.woff2")}
    for script in [each for each in named if each.suffix == ".js"]:
        imports = re.findall(r'(?:from|import)\s*"\./([^"]+\.js)"', script.read_text())
        found |= {BUILT / "assets" / name for name in imports}
    return found


def test_the_console_is_small() -> None:
    whole = sum(compressed(path) for path in BUILT.rglob("*") if path.is_file())
    first = sum(map(compressed, first_view()))

    assert whole <= MOST_BYTES
    assert first <= MOST_FIRST_BYTES


def test_the_types_of_the_api_are_generated_from_its_document(tmp_path: Path) -> None:
    made = tmp_path / "schema.d.ts"
    subprocess.run([ROOT / ".ci/web", "run", "types", "--", made], check=True, timeout=120)

    assert made.read_text() == (ROOT / "web/src/api/schema.d.ts").read_text()
