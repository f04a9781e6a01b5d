"""How does a script become a tool? Rendered for each call, run in the sandbox, its end told as its author means it."""

import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolreeve.core import json
from toolreeve.core.context import Context, silent
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files
from toolreeve.core.process import Ended, OnOutput, ProcessRequest
from toolreeve.core.result import Output
from toolreeve.core.schema import Schema
from toolreeve.core.tool import BoundTool, ToolSpec
from toolreeve.scripted.definition import Definition, with_secrets
from toolreeve.scripted.shebang import ARGUMENTS, bash_command, foreign_command
from toolreeve.scripted.template import Rendered, Script

Arguments = Mapping[str, Any]
Lookup = Callable[[str], str | None]
"""Finds a secret by its name."""


def bind_definition(definition: Definition, secret: Lookup) -> BoundTool:
    scripted = _Scripted(definition, secret)
    spec = ToolSpec(
        name=definition.id,
        description=definition.description,
        input=definition.parameters.schema,
        danger=definition.danger,
        category=definition.category,
        read_only=definition.read_only,
        idempotent=definition.idempotent,
        limits=definition.limits,
        tags=definition.tags,
        examples=definition.examples,
        source=definition.source,
        estimated_cost=definition.estimated_cost,
        confirmation=definition.confirmation,
    )
    return BoundTool(
        spec=spec,
        run=scripted.run,
        input=Schema(spec.input),
        list_effects=scripted.effects,
        screen=scripted.screen,
    )


class _Scripted:
    def __init__(self, definition: Definition, secret: Lookup) -> None:
        self._definition, self._secret = definition, secret
        self._screened: tuple[Arguments, Rendered] | None = None

    def screen(self, args: Arguments, _: Context) -> None:
        """What the template would refuse is refused before anybody is asked."""
        if self._definition.script is not None:
            self._screened = args, self._definition.script.render(args)

    def _rendered(self, script: Script, args: Arguments) -> Rendered:
        """What was screened just now, if it was this very call."""
        screened, self._screened = self._screened, None
        return screened[1] if screened is not None and screened[0] is args else script.render(args)

    def effects(self, args: Arguments, files: Files) -> Sequence[Effect]:
        place, script = self._definition.place, self._definition.script
        shown = self._definition.text if script is None else script.show(args)
        found = [Effect(EffectKind.EXEC, shown.strip())]
        found += [Effect(EffectKind.WRITE, files.target(path)) for path in place.writable]
        if place.network != "none":
            found.append(Effect(EffectKind.NET, "*"))
        return found

    async def run(self, args: dict[str, Any], context: Context) -> Output:
        secrets = self._secrets()
        request = self._request(args, context, secrets)
        try:
            ended = await context.processes.run(request, None if secrets else _passing_on(context))
        except ToolError as error:
            error.data = {name: _cleared(secrets, value) for name, value in (error.data or {}).items()} or None
            raise
        data = {
            "stdout": _cleared(secrets, ended.stdout.decode(errors="replace")),
            "stderr": _cleared(secrets, ended.stderr.decode(errors="replace")),
            "exit_code": ended.exit_code,
        }
        self._require_success(ended, args, data)
        return Output(
            data=data,
            main=data["stdout"],
            truncated=ended.truncated,
            sandbox=ended.sandbox,
            command=self._definition.interpreter.name,
        )

    def _require_success(self, ended: Ended, args: Arguments, data: Mapping[str, Any]) -> None:
        if ended.limit_hit:
            raise ToolError(ErrorCode.LIMIT, ended.limit_hit, data=data, meta={"sandbox": ended.sandbox})
        if ended.exit_code:
            raise self._definition.errors.failure(ended, args, data)

    def _request(self, args: Arguments, context: Context, secrets: Mapping[str, str]) -> ProcessRequest:
        definition, place = self._definition, self._definition.place
        argv, files = self._command(args)
        return ProcessRequest(
            argv=argv,
            directory=self._directory(context.files),
            environment=with_secrets(place.environment, secrets),
            files=files,
            writable=tuple(posixpath.normpath(posixpath.join(context.files.root, path)) for path in place.writable),
            network=place.network,
            private_directory=place.private,
            allowed_programs=("bash", definition.interpreter.name, *place.programs) if place.programs else (),
            limits=place.limits,
        )

    def _command(self, args: Arguments) -> tuple[tuple[str, ...], dict[str, bytes]]:
        definition = self._definition
        if definition.script is None:
            argv, files = foreign_command(definition.interpreter, definition.text)
            return argv, {ARGUMENTS: json.dumps(dict(args)), **files}
        rendered = self._rendered(definition.script, args)
        return bash_command(definition.interpreter, rendered.script, rendered.data(), definition.id)

    def _directory(self, files: Files) -> str:
        place = self._definition.place
        return files.root if place.private else files.resolve(place.directory)

    def _secrets(self) -> dict[str, str]:
        found = {name: self._secret(name) for name in self._definition.place.secrets}
        for name, value in found.items():
            if value is None:
                raise ToolError(
                    ErrorCode.PERMISSION,
                    f"the tool needs the secret {name!r}, which is not set",
                    suggestions=(f"set the variable {name}, or put it into secrets.toml",),
                )
        return {name: value for name, value in found.items() if value is not None}


def _cleared(secrets: Mapping[str, str], value: Any) -> Any:
    """What a script prints of its secrets goes no further."""
    for secret in secrets.values() if isinstance(value, str) else ():
        value = value.replace(secret, "[redacted]") if secret else value
    return value


def _passing_on(context: Context) -> OnOutput | None:
    """Output as it comes. Not that of a script with secrets: one could come in two pieces."""
    if context.progress is silent:
        return None
    return lambda _, data: context.progress(data.decode(errors="replace"))
