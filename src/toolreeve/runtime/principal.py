"""The local principal: user and role of calls without a token.

A role comes from the configuration, by the operating system's user where it names one; never from a call's arguments
or the environment's user name.
"""

import os
import pwd
from dataclasses import dataclass

from toolreeve.config import Configuration
from toolreeve.core.call import LOCAL, Principal, Role
from toolreeve.core.errors import ConfigError

OPERATOR = Principal(user=LOCAL.user, role=Role.OPERATOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPrincipal:
    """`why` names what gave the role; `system_user` is the operating system's name of the user."""

    principal: Principal
    system_user: str
    why: str

    @property
    def for_agents(self) -> Principal:
        """The principal of doors that agents use: an administrator at the terminal does not make the agent one."""
        return OPERATOR if self.principal.role is Role.ADMIN else self.principal


def find_local_principal(configuration: Configuration) -> LocalPrincipal:
    """Raises ConfigError for a role that does not exist."""
    table = configuration.settings.principal
    name = system_user()
    if name in table.roles:
        role = _parse(table.roles[name], configuration)
        why = f"principal.roles.{name} ({configuration.origins['principal.roles']})"
    else:
        role = Role(table.role)
        why = f"principal.role ({configuration.origins['principal.role']})"
    return LocalPrincipal(principal=Principal(user=LOCAL.user, role=role), system_user=name, why=why)


def system_user() -> str:
    """By the effective user id, which a process cannot choose."""
    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _parse(role: object, configuration: Configuration) -> Role:
    try:
        return Role(role)
    except ValueError:
        known = ", ".join(each.value for each in Role)
        raise ConfigError(
            f"{role!r} is not a role",
            source=configuration.origins["principal.roles"],
            key="principal.roles",
            fix=f"write one of {known}",
        ) from None
