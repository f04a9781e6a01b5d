"""How does a shell complete our commands? It sources a script that asks us back."""

import click

from toolreeve.cli.options import CliCommand, current
from toolreeve.cli.output import say, say_json

_HOW = {
    "bash": 'add to ~/.bashrc: eval "$(toolreeve completion bash)"',
    "zsh": 'add to ~/.zshrc: eval "$(toolreeve completion zsh)"',
    "fish": "run: toolreeve completion fish > ~/.config/fish/completions/toolreeve.fish",
}


@click.command(cls=CliCommand)
@click.argument("shell", type=click.Choice(list(_HOW)))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash:  eval "$(toolreeve completion bash)"     in ~/.bashrc
    zsh:   eval "$(toolreeve completion zsh)"      in ~/.zshrc
    fish:  toolreeve completion fish > ~/.config/fish/completions/toolreeve.fish
    """
    from click.shell_completion import get_completion_class

    from toolreeve.cli.main import toolreeve

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click cannot complete for {shell}")
    script = kind(toolreeve, {}, "toolreeve", "_TOOLREEVE_COMPLETE").source()
    if current().json:
        say_json({"shell": shell, "script": script, "install": _HOW[shell]})
    else:
        say(script)
