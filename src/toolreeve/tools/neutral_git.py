"""Git settings that neutralise the programs a repository's own settings name.

A repository can name programs for hooks, file monitors, pagers, editors, diffs and filters, and plain `git status`
would run some of them. Settings given through the environment override those of every file.
"""

from collections.abc import Iterable, Mapping

from toolreeve.core.process import NO_EXTERNAL_DIFF

_NEUTRAL_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.editor": "true",
    "core.askPass": "true",
    "core.sshCommand": "ssh",
    "core.attributesFile": "/dev/null",
    "core.gitProxy": "",
    "interactive.diffFilter": "",
    "sequence.editor": "true",
    "credential.helper": "",
    "gpg.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "log.showSignature": "false",
    "protocol.ext.allow": "never",
    "submodule.recurse": "false",
    "maintenance.auto": "false",
    "gc.auto": "0",
    "safe.directory": "*",
    "core.checkStat": "minimal",
}
_DRIVER_SECTIONS = ("filter", "diff", "merge", "difftool", "mergetool")
_PROGRAM_KEYS = ("clean", "smudge", "process", "textconv", "command", "cmd", "driver")


def environment(settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The environment variables that override settings of all files."""
    variables = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "cat", "GIT_EDITOR": "true"}
    variables[NO_EXTERNAL_DIFF] = ""
    count = 0
    for key, value in settings:
        variables[f"GIT_CONFIG_KEY_{count}"] = key
        variables[f"GIT_CONFIG_VALUE_{count}"] = value
        count += 1
    return {**variables, "GIT_CONFIG_COUNT": str(count)}


NEUTRAL: Mapping[str, str] = environment(_NEUTRAL_SETTINGS.items())


def neutral_for(keys: Iterable[str]) -> dict[str, str]:
    """As NEUTRAL, with each filter and diff driver among the keys that a repository sets emptied as well."""
    emptied: dict[str, str] = {}
    for key in keys:
        section, _, rest = key.partition(".")
        driver, _, name = rest.rpartition(".")
        if not driver or section.lower() not in _DRIVER_SECTIONS or name.lower() not in _PROGRAM_KEYS:
            continue
        emptied[key] = ""
        if section.lower() == "filter":
            emptied[f"{section}.{driver}.required"] = "false"
    return environment({**_NEUTRAL_SETTINGS, **emptied}.items())
