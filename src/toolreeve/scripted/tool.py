"""Scripted tools: a script rendered per call, run in the sandbox.

A tool is shared by all calls and holds no state of any: each stage works from the arguments alone.
"""

import posixpath
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from toolreeve.core import json
from toolreeve.core.context import Context, silent
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.failure_reason import lacks_network
from toolreeve.core.files import Files
from toolreeve.core.process import Ended, OnOutput, PrintedOrder, ProcessRequest, Stream
from toolreeve.core.result import Output
from toolreeve.core.schema import Schema
from toolreeve.core.secrets.encodings import SHORTEST
from toolreeve.core.secrets.redactor import MARK
from toolreeve.core.secrets.scrubber import Scrubber
from toolreeve.core.tool import BoundTool, ToolSpec
from toolreeve.scripted.definition import Definition, with_secrets
from toolreeve.scripted.shebang import ARGUMENTS, bash_command, foreign_command

NO_NETWORK = "this tool has no network: sandbox.network in its definition is not set"
MORE_OUTPUT = "sandbox.max_output_kb in the tool's definition keeps more"
Arguments = Mapping[str, Any]
Lookup = Callable[[str], str | None]
"""Finds a secret by its name."""


def bind_definition(definition: Definition, secret: Lookup) -> BoundTool:
    scripted = _ScriptedTool(definition, secret)
    spec = ToolSpec(
        name=definition.id,
        title="" if definition.title == definition.id else definition.title,
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
        confinable=True,
    )
    return BoundTool(
        spec=spec,
        run=scripted.run,
        input=Schema(spec.input),
        list_effects=scripted.effects,
        screen=scripted.screen,
    )


class _ScriptedTool:
    def __init__(self, definition: Definition, secret: Lookup) -> None:
        self._definition = definition
        self._secret = secret

    def screen(self, args: Arguments, _: Context) -> None:
        """A call that the template refuses is refused before anyone is asked for approval."""
        if self._definition.script is not None:
            self._definition.script.render(args)

    def effects(self, args: Arguments, files: Files) -> Sequence[Effect]:
        sandbox = self._definition.sandbox
        script = self._definition.script
        shown = self._definition.text if script is None else script.show(args)
        found = [Effect(EffectKind.EXEC, shown.strip())]
        found += [Effect(EffectKind.WRITE, files.target(path)) for path in sandbox.writable]
        if sandbox.network != "none":
            found.append(Effect(EffectKind.NET, "*"))
        return found

    async def run(self, args: dict[str, Any], context: Context) -> Output:
        secrets = self._secrets()
        request = self._request(args, context, secrets)
        redact = _redactor(secrets.values())
        order = PrintedOrder()
        try:
            ended = await context.processes.run(request, None if secrets else _report_output(context, order))
        except ToolError as error:
            if error.data is not None:
                error.data = {
                    name: redact(each, is_cut=True) if isinstance(each, str) else each
                    for name, each in error.data.items()
                }
            raise
        data = {
            "stdout": redact(ended.stdout.decode(errors="replace"), is_cut=ended.truncated),
            "stderr": redact(ended.stderr.decode(errors="replace"), is_cut=ended.truncated),
            "exit_code": ended.exit_code,
        }
        if ended.truncated:
            data |= {"truncated": True, "next": MORE_OUTPUT}
        self._require_success(ended, args, data)
        return Output(
            data=data,
            main=data["stdout"],
            truncated=ended.truncated,
            sandbox=ended.sandbox,
            command=self._definition.interpreter.name,
            order=order.parts,
        )

    def _require_success(self, ended: Ended, args: Arguments, data: Mapping[str, Any]) -> None:
        if ended.limit_hit:
            raise ToolError(ErrorCode.LIMIT, ended.limit_hit, data=data, meta={"sandbox": ended.sandbox})
        if ended.exit_code:
            failure = self._definition.errors.failure(ended, args, data)
            definition = self._definition
            printed = data["stderr"]
            if definition.sandbox.network == "none" and lacks_network(
                printed, script=definition.text, status=ended.exit_code
            ):
                failure.suggestions = (*failure.suggestions, NO_NETWORK)
            raise failure

    def _request(self, args: Arguments, context: Context, secrets: Mapping[str, str]) -> ProcessRequest:
        definition = self._definition
        sandbox = definition.sandbox
        argv, files = self._command(args)
        return ProcessRequest(
            argv=argv,
            directory=self._directory(context.files),
            environment=with_secrets(sandbox.environment, secrets),
            files=files,
            writable=tuple(posixpath.normpath(posixpath.join(context.files.root, path)) for path in sandbox.writable),
            network=sandbox.network,
            private_directory=sandbox.private,
            allowed_programs=("bash", definition.interpreter.name, *sandbox.programs) if sandbox.programs else (),
            limits=sandbox.limits,
        )

    def _command(self, args: Arguments) -> tuple[tuple[str, ...], dict[str, bytes]]:
        definition = self._definition
        if definition.script is None:
            argv, files = foreign_command(definition.interpreter, definition.text)
            return argv, {ARGUMENTS: json.dumps(dict(args)), **files}
        rendered = definition.script.render(args)
        return bash_command(definition.interpreter, rendered.script, rendered.data(), definition.id)

    def _directory(self, files: Files) -> str:
        sandbox = self._definition.sandbox
        return files.root if sandbox.private else files.resolve(sandbox.directory)

    def _secrets(self) -> dict[str, str]:
        found = {name: self._secret(name) for name in self._definition.sandbox.secrets}
        for name, value in found.items():
            if value is None:
                raise ToolError(
                    ErrorCode.PERMISSION,
                    f"the tool needs the secret {name!r}, which is not set",
                    suggestions=(f"set the environment variable {name}, or put it into secrets.toml",),
                )
        return {name: value for name, value in found.items() if value is not None}


class _Redact(Protocol):
    def __call__(self, text: str, *, is_cut: bool) -> str: ...


def _redactor(secrets: Collection[str]) -> _Redact:
    """Removes the script's own secrets, in any encoding; one too short to be searched for encoded, as it is. The end of
    a text that `is_cut` may be the beginning of a secret."""
    scrubber = Scrubber(secrets)
    short = [secret for secret in secrets if 0 < len(secret) < SHORTEST]

    def redact(text: str, *, is_cut: bool) -> str:
        text = scrubber.text(text, is_cut=is_cut)
        for secret in short:
            text = text.replace(secret, MARK)
        return text

    return redact


def _report_output(context: Context, order: PrintedOrder) -> OnOutput:
    """Output as it comes. Not that of a script with secrets: one could come in two pieces."""

    def report(stream: Stream, data: bytes) -> None:
        order.add(stream, data)
        if context.progress is not silent:
            context.progress(data.decode(errors="replace"))

    return report
