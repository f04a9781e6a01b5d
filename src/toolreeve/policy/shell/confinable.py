"""Grade of a command: the tightest confinement in which it can run.

The kernel enforces the confinement, so a grade is a belief about what suffices, not about what is harmless: a wrong one
makes a command fail, and never take effect. It is independent of `Analysis.known`, which decides where no sandbox
confines: programs that only read are graded LOOK whatever their words are, and unknown programs TRY.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import CONTACTS, Effect, EffectKind
from toolreeve.core.guarded_paths import find_guarded
from toolreeve.core.trial import Confinement
from toolreeve.policy.shell.danger import Risk, assess_effect
from toolreeve.policy.shell.interpret.findings import CommandPart, Findings
from toolreeve.policy.shell.interpret.paths import is_under

_CHANGES = frozenset((EffectKind.WRITE, EffectKind.DELETE))
_PRIVATE = ("/tmp", "/dev/shm")  # noqa: S108 - each confined command has its own
_OUTGOING = frozenset((*CONTACTS, EffectKind.SPEND))
_NETWORK = "the network"
_INSTALLS = "the network, unless all that it installs is there"
_OFFLINE = frozenset("--offline --no-index --no-build-isolation --help -h --version".split())
"""Words with which a program that downloads works without a network."""


class Confinable(NamedTuple):
    """`why` it cannot be confined more tightly: for WORK what it needs from outside, for TRY what it may change, and
    for LOOK why it is not known, or nothing if it certainly only reads. `installs`: all that it needs is a network, for
    what may be there already."""

    within: Confinement
    why: str = ""
    installs: bool = False

    def find_need(self, *, offline: bool) -> str:
        """What it needs that no confinement gives; empty if it can be tried. Where commands are `offline`, running for
        real gives an installation no more than a trial does."""
        may_be_tried = self.within is not Confinement.WORK or (offline and self.installs)
        return "" if may_be_tried else self.why


def grade(findings: Findings, danger: Risk, *, home: str, root: str, allowed: Sequence[str] = ()) -> Confinable:
    """`danger` is the result of `assess`; it already says whether the command certainly only reads."""
    unknown = [part for part in findings.parts if part.why]
    if not unknown and danger[0] <= DangerLevel.LOW:
        return Confinable(Confinement.LOOK)
    if needs := list(_needs(findings, danger, home, root, allowed)):
        return Confinable(Confinement.WORK, needs[0], installs=all(need.endswith(_INSTALLS) for need in needs))
    if change := next(_changes(findings, home, root), ""):
        return Confinable(Confinement.TRY, change)
    why = unknown[0].why if unknown else danger[1]
    return Confinable(Confinement.LOOK if all(part.reads for part in unknown) else Confinement.TRY, why)


def find_network_use(findings: Findings) -> str:
    """What the command cannot do without a network; empty if it may work without."""
    for effect in findings.effects:
        if effect.kind in CONTACTS:
            return f"it {_DOING[effect.kind]} {effect.target}"
    for part in findings.parts:
        if part.why and _needed_by(part) == _NETWORK:
            return f"`{' '.join(part.argv)[:60]}` needs one"
    return ""


def changes(effects: Sequence[Effect], kept: Set[Effect], *, home: str, root: str) -> tuple[Effect, ...]:
    """The files that a command is known to change, besides those that programs keep for themselves and those that
    vanish with it: in the sandbox, `~` is an empty directory of the command's own."""
    changing = (effect for effect in effects if effect.kind in _CHANGES and effect not in kept)
    return tuple(effect for effect in changing if not _is_private(effect.target, home, root))


def _is_private(path: str, home: str, root: str) -> bool:
    return not is_under(path, root) and any(is_under(path, place) for place in (*_PRIVATE, home))


def _changes(findings: Findings, home: str, root: str) -> Iterator[str]:
    for effect in changes(findings.effects, findings.kept, home=home, root=root):
        yield f"{_DOING[effect.kind]} {effect.target}"
    for danger, reason in findings.alarms:
        if danger > DangerLevel.LOW:
            yield reason


def _needs(findings: Findings, danger: Risk, home: str, root: str, allowed: Sequence[str]) -> Iterator[str]:
    """What the command needs that no confinement gives."""
    if danger[0] is DangerLevel.CRITICAL:
        yield danger[1]
    if findings.background:
        yield "starts a background process, which a confined command cannot leave running"
    for part in findings.parts:
        if need := _needed_by(part):
            yield f"`{' '.join(part.argv)[:60]}` needs {need}"
    for effect in findings.effects:
        if effect.kind in _OUTGOING:
            yield f"needs the network: {_DOING[effect.kind]} {effect.target}"
        elif effect.kind is EffectKind.READ:
            level, reason = assess_effect(effect, home, root, allowed)
            if level > DangerLevel.LOW:
                yield reason
    for effect in changes(findings.effects, findings.kept, home=home, root=root):
        if why := _out_of_reach(effect, root):
            yield f"{_DOING[effect.kind]} {effect.target}, {why}"


def _out_of_reach(effect: Effect, root: str) -> str:
    """Why a change cannot be tried over a copy of the workspace, if so."""
    if not is_under(effect.target, root):
        return "outside the workspace"
    names = effect.target[len(root) :].strip("/").split("/")
    guarded = find_guarded(names) if names != [".git"] else None
    return f"a protected path: {guarded.by}" if guarded else ""


def _needed_by(part: CommandPart) -> str:
    """By the name of the program, or of the program and its subcommand."""
    need = _NEEDS.get(part.program, "")
    if not need and part.program in _WITH_SUBCOMMANDS:
        words = [word for word in part.argv[1:] if word[:1] != "-"]
        need = _NEEDS.get(" ".join((part.program, *words[:1])), "")
    works_offline = part.known or not _OFFLINE.isdisjoint(part.argv)  # effects tell what a known one contacts
    return "" if works_offline and need in (_NETWORK, _INSTALLS) else need


_DOING = {
    EffectKind.WRITE: "writes",
    EffectKind.DELETE: "deletes",
    EffectKind.NET: "contacts",
    EffectKind.SEND: "sends data to",
    EffectKind.SPEND: "spends",
}
_NEEDED_BY = {
    _NETWORK: """
        ssh scp sftp ftp telnet nc ncat netcat socat nmap curl wget aria2c http xh rsh mosh lynx w3m ping ping6
        traceroute dig nslookup host whois gh glab hub aws gcloud gsutil az doctl heroku vercel netlify fly flyctl
        wrangler firebase ngrok twine pip/download pip/wheel pip/index pip/search pip3/download pip3/wheel pipx/install
        pipx/run uv/add uv/lock uv/tool poetry/add poetry/update poetry/lock pdm/add conda/install conda/create
        conda/update mamba/install mamba/create npm/ci npm/add npm/update npm/up npm/outdated npm/audit npm/publish
        npm/view npm/info npm/init npm/create npm/login npm/whoami yarn/add yarn/upgrade yarn/up yarn/dlx yarn/create
        yarn/audit yarn/outdated yarn/publish pnpm/add pnpm/update pnpm/up pnpm/dlx pnpm/create pnpm/audit pnpm/outdated
        pnpm/publish bun/add bun/update bun/create bunx cargo/install cargo/update cargo/add cargo/search cargo/publish
        gem/install gem/update bundle/update composer/update composer/require brew/install brew/update brew/upgrade
        apt/update apt/install apt-get/update apt-get/install apk/add dnf/install yum/install pacman snap/install
        flatpak/install git/push git/pull git/fetch git/clone git/ls-remote terraform/plan terraform/apply
        terraform/destroy pulumi vault helm/repo python/http.server python3/http.server
    """,
    _INSTALLS: """
        pip/install pip3/install uv/sync poetry/install pdm/install pipenv/install npm/install npm/i yarn/install
        pnpm/install pnpm/i bun/install cargo/fetch go/get go/install bundle/install composer/install mix/deps.get
        terraform/init
    """,
    "a service outside the sandbox": """
        docker docker-compose podman buildah skopeo nerdctl kubectl minikube kind k3s k3d helm systemctl service
        journalctl launchctl supervisorctl crontab at batch tmux screen nohup setsid daemonize start-stop-daemon pm2
        vagrant virsh multipass lxc ansible-playbook xdg-open open
    """,
    "another user's rights": """
        sudo su doas pkexec runuser newgrp chroot unshare nsenter useradd usermod userdel passwd visudo
    """,
    "a device": """
        mount umount losetup mkfs fdisk parted mkswap swapon swapoff wipefs insmod modprobe sysctl iptables nft ufw
        shutdown reboot halt poweroff init
    """,
    "a person's decision": """
        toolreeve
    """,
}  # fmt: skip
_NEEDS: Mapping[str, str] = {
    name.replace("/", " "): need for need, names in _NEEDED_BY.items() for name in names.split()
}
_WITH_SUBCOMMANDS = frozenset(name.partition(" ")[0] for name in _NEEDS if " " in name)
