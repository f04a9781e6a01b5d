"""`toolreeve completion`: the completion script of a shell."""

import click

from toolreeve.cli.options import CliCommand, current
from toolreeve.cli.output import print_json, print_text

_INSTALL = {
    "bash": 'add to ~/.bashrc: eval "$(toolreeve completion bash)"',
    "zsh": 'add to ~/.zshrc: eval "$(toolreeve completion zsh)"',
    "fish": "run: toolreeve completion fish > ~/.config/fish/completions/toolreeve.fish",
}


@click.command(cls=CliCommand)
@click.argument("shell", type=click.Choice(list(_INSTALL)))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash:  eval "$(toolreeve completion bash)"     in ~/.bashrc
    zsh:   eval "$(toolreeve completion zsh)"      in ~/.zshrc
    fish:  toolreeve completion fish > ~/.config/fish/completions/toolreeve.fish
    """
    from click.shell_completion import get_completion_class

    from toolreeve.cli import suggestions as suggestions  # registers the completion of the shells
    from toolreeve.cli.main import COMPLETE, toolreeve

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    script = kind(toolreeve, {}, "toolreeve", COMPLETE).source()
    if current().json:
        print_json({"shell": shell, "script": script, "install": _INSTALL[shell]})
    else:
        print_text(script)
