"""Handlers of git: global options, then the subcommand's specification."""

import re

from toolreeve.core.effects import EffectKind, Reach
from toolreeve.policy.shell.interpret.expansion import Word, several, shown
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.paths import is_under, resolve
from toolreeve.policy.shell.interpret.printed_paths import Printed
from toolreeve.policy.shell.interpret.scope import ShellScope
from toolreeve.policy.shell.programs.arguments import NotKnown, RunsCode, read
from toolreeve.policy.shell.programs.roles import apply_arguments, apply_role
from toolreeve.policy.shell.programs.spec import Program
from toolreeve.policy.shell.programs.spec_check import conclude, subcommand

_VERIFYING = frozenset(("verify-commit", "verify-tag"))
_SIGNED = re.compile(r"%G|%\([^)]*signature|--show-signature")


def handle(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    arguments = read(spec, words)
    scope = site.scope
    for flag, value in arguments.flags:
        if flag == "-C":
            if not isinstance(value, str):
                raise NotKnown("git in a directory decided only when it runs")
            site.touch(EffectKind.READ, value, Reach.NAMES)
            scope = scope.copy()
            scope.directories = tuple(resolve(value, directory) for directory in scope.directories)
    if not arguments.operands:
        return None
    printed = subcommand(spec, arguments.operands, site.at(scope))
    _check_home(scope)
    if arguments.operands[0] in _VERIFYING or any(_SIGNED.search(shown(word)) for word in arguments.operands):
        raise RunsCode("checks signatures with gpg, or with the program that the repository names")
    # Paths printed from another directory mean something else in this one.
    return printed if scope is site.scope else None


def _check_home(scope: ShellScope) -> None:
    """A repository's configuration can name programs to run, and any directory may be a repository."""
    for directory in scope.directories:
        if not is_under(scope.start, directory) and not is_under(scope.root, directory):
            raise RunsCode(f"uses the configuration of {directory}, which may be another repository")


def branch(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """`git branch` and `git tag` list if they get no name or a listing flag."""
    arguments = read(spec, words)
    listing = arguments.has(*spec.data["listing"].split())
    if arguments.operands and not listing:
        site.touch(EffectKind.WRITE, ".git")
    return conclude(spec, arguments, site)


def remote(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Contacts the first repository named, or else the upstream of the branch."""
    arguments = read(spec, words)
    if not arguments.operands:
        apply_role(spec.operands[0].rstrip("?*+"), "origin", site)
    apply_arguments(spec, arguments, site)
    return conclude(spec, arguments, site)


def config(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """One operand or a getting flag reads a setting; two operands set it."""
    arguments = read(spec, words)
    if arguments.operands[:1] in (["get"], ["list"]):
        return conclude(spec, arguments, site)
    if any(map(several, arguments.operands)):
        raise NotKnown("git config with words that may be a setting and its value")
    asked = arguments.has("--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l", "--get-color")
    if not asked and len(arguments.operands) != 1:
        raise NotKnown("git config that changes a setting")
    if arguments.operands[:1] in (["set"], ["unset"], ["edit"], ["rename-section"], ["remove-section"]):
        raise NotKnown("git config that changes a setting")
    return conclude(spec, arguments, site)
