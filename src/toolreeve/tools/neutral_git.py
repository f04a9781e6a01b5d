"""How is git kept from running what a repository's own settings name? Its settings are overridden one by one.

A repository can name programs for hooks, file monitors, pagers, editors, diffs and filters, and plain `git status`
would run some of them. Settings given through the environment outrank those of every file.
"""

from collections.abc import Iterable, Mapping

_NEUTRAL_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.editor": "true",
    "core.askPass": "true",
    "core.sshCommand": "ssh",
    "core.attributesFile": "/dev/null",
    "core.gitProxy": "",
    "diff.external": "",
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
_RUNNING = ("clean", "smudge", "process", "textconv", "command", "cmd", "driver")


def environment(settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The variables that set these settings above all files."""
    told = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "cat", "GIT_EDITOR": "true"}
    number = 0
    for number, (key, value) in enumerate(settings, start=1):
        told |= {f"GIT_CONFIG_KEY_{number - 1}": key, f"GIT_CONFIG_VALUE_{number - 1}": value}
    return {**told, "GIT_CONFIG_COUNT": str(number)}


NEUTRAL: Mapping[str, str] = environment(_NEUTRAL_SETTINGS.items())


def neutral_for(keys: Iterable[str]) -> dict[str, str]:
    """As NEUTRAL, and each filter and diff driver among the keys that a repository sets is emptied as well."""
    emptied: dict[str, str] = {}
    for key in keys:
        section, _, rest = key.partition(".")
        driver, _, name = rest.rpartition(".")
        if (
            section.lower() in ("filter", "diff", "merge", "difftool", "mergetool")
            and driver
            and name.lower() in _RUNNING
        ):
            emptied[key] = ""
            if section.lower() == "filter":
                emptied[f"{section}.{driver}.required"] = "false"
    return environment({**_NEUTRAL_SETTINGS, **emptied}.items())
