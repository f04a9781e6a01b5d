"""`toolreeve init`: writes a commented configuration, or a connector to begin with.

What is written is valid as it is; existing files are never overwritten.
"""

import re
from keyword import iskeyword
from pathlib import Path

import click

from toolreeve.cli.options import CliCommand, current
from toolreeve.cli.output import print_json, print_text
from toolreeve.core.errors import ExitStatus

CONFIG = """\
# Toolreeve settings of this project. `toolreeve config schema` prints the JSON Schema for editors.
#
# A project's file may only tighten the user's own file (`toolreeve config path` shows where that is):
# allow lists, additional directories and the like belong there, not here.

[workspace]
# false: no tool may change files.
# allow_write = false

[policy]
# strict: whatever is not explicitly allowed needs approval. plan: only read-only calls run.
# mode = "strict"

# Tools that never run in this project; patterns such as "git__*" are allowed.
# denied_tools = ["delete_file"]

# Total budget of all calls in dollars.
# budget_limit = 5.0

[limits]
# Timeout of a call in seconds, unless its tool sets one.
# timeout = 30.0
"""

POLICY = """\
# Policy rules of this project; `toolreeve policy check` checks them and their examples.
# A project's rules may only tighten: ask or deny. Allow rules belong in your own policy.yaml.
rules: []
"""


@click.command(cls=CliCommand)
@click.argument("what", required=False, type=click.Choice(["connector"]))
@click.argument("name", required=False)
@click.option("--policy", is_flag=True, help="Write a policy.yaml as well.")
def init(what: str | None, name: str | None, *, policy: bool) -> int:
    """Write a commented toolreeve.toml into the workspace, or with `connector NAME` a connector and its test. Existing
    files are not changed."""
    folder = Path(current().workspace or ".")
    if not folder.is_dir():
        raise click.UsageError(f"{folder} is not a directory")
    wanted = {"toolreeve.toml": CONFIG}
    if what is not None:
        if policy:
            raise click.UsageError("--policy belongs to `toolreeve init` without a connector")
        wanted = _new_connector(name or "")
    elif policy:
        wanted["policy.yaml"] = POLICY
    results = {
        str(folder / name): "written" if _write_new(folder / name, text) else "already exists, not changed"
        for name, text in wanted.items()
    }
    if current().json:
        print_json(results)
    else:
        for path, result in results.items():
            print_text(f"{path}: {result}")
    return ExitStatus.OK


def _new_connector(name: str) -> dict[str, str]:
    """The files of a new connector. Raises UsageError for a name that cannot name a module and its tools."""
    from importlib.resources import files
    from string import Template

    if not re.fullmatch(r"[a-z][a-z0-9_]{0,40}", name) or iskeyword(name):
        raise click.UsageError(f"NAME: {name[:60]!r} cannot name a connector: use lower-case letters, digits and _")
    templates = files("toolreeve.cli").joinpath("templates")
    written = {f"{name}.py": "connector.py.txt", f"test_{name}.py": "test_connector.py.txt"}
    return {
        path: Template(templates.joinpath(template).read_text()).substitute(name=name, NAME=name.upper())
        for path, template in written.items()
    }


def _write_new(path: Path, text: str) -> bool:
    """False if the path exists, a dangling link included."""
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        return False
    except OSError as problem:
        raise click.ClickException(f"{path} cannot be written: {problem.strerror}") from None
    return True
