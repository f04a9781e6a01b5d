"""What does a workspace start with? A commented configuration that holds as it stands; nothing is ever overwritten."""

from pathlib import Path

import click

from toolreeve.cli.options import CliCommand, current
from toolreeve.cli.output import say, say_json
from toolreeve.core.errors import ExitStatus

CONFIG = """\
# Toolreeve's settings for this project. `toolreeve config schema` prints the JSON Schema for editors.
#
# A project's file may only tighten what the user's own file says (`toolreeve config path` shows where that is):
# allow lists, further directories and the like belong there, not here.

[workspace]
# false: no tool changes a file here.
# allow_write = false

[policy]
# strict: whatever is not explicitly allowed asks. plan: only read-only calls run.
# mode = "strict"

# Tools that never run in this project; patterns such as "git__*" are fine.
# denied_tools = ["delete_file"]

# Dollars that all calls together may spend.
# budget_limit = 5.0

[limits]
# Seconds that a call may take where its tool does not say.
# timeout = 30.0
"""

POLICY = """\
# Rules of this project for calls that need more care; `toolreeve policy check` checks them, examples included.
# A project's rules may only tighten: ask or deny. Allow rules belong into your own policy.yaml.
rules: []
"""


@click.command(cls=CliCommand)
@click.option("--policy", is_flag=True, help="Write a policy.yaml as well.")
def init(*, policy: bool) -> int:
    """Write a commented toolreeve.toml into the workspace. What exists is left as it is."""
    folder = Path(current().workspace or ".")
    if not folder.is_dir():
        raise click.UsageError(f"{folder} is not a directory")
    wanted = {"toolreeve.toml": CONFIG} | ({"policy.yaml": POLICY} if policy else {})
    written = {name: _write_new(folder / name, text) for name, text in wanted.items()}
    if current().json:
        say_json({str(folder / name): "written" if new else "left as it was" for name, new in written.items()})
    else:
        for name, new in written.items():
            say(f"{folder / name}: {'written' if new else 'exists already, left as it is'}")
    return ExitStatus.OK


def _write_new(path: Path, text: str) -> bool:
    """False if something is there already, a dangling link included."""
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        return False
    except OSError as problem:
        raise click.ClickException(f"{path} cannot be written: {problem.strerror}") from None
    return True
