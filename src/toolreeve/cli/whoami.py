"""`toolreeve whoami`: user and role of local calls, and their origin."""

import click

from toolreeve.cli.options import CliCommand, current
from toolreeve.cli.output import print_json, print_text


@click.command(cls=CliCommand)
def whoami() -> None:
    """Show who calls are made as, with which role, and why."""
    from toolreeve.runtime.principal import find_local_principal

    found = find_local_principal(current().configuration())
    principal = found.principal
    agents = found.for_agents.role.value
    if current().json:
        print_json(
            {
                "user": principal.user,
                "system_user": found.system_user,
                "role": principal.role.value,
                "why": found.why,
                "agents": agents,
            }
        )
        return
    print_text(f"{principal.user} ({found.system_user} on this machine), {principal.role.value}")
    print_text(f"  the role comes from {found.why}")
    print_text(f"  agents that call through `toolreeve mcp` or a hook: {agents}; over HTTP, their token's role")
