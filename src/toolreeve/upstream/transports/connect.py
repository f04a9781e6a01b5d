"""How is a configured server reached? Over pipes, inside the sandbox or outside, or over the web through the guard."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from toolreeve.core.secrets.scrubber import Scrubber
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.upstream.server_spec import BEHIND, ServerSpec
from toolreeve.upstream.transports import process
from toolreeve.upstream.transports.sandboxed import Enclosure, SandboxPlace, read_grant
from toolreeve.upstream.transports.stdio import StdioTransport
from toolreeve.upstream.transports.transport import ServerUnavailable, Transport

Authorize = Callable[[str], Awaitable[None]]
"""Shows a person the URL at which they let us in."""


class TransportFactory:
    """`environ` is our own environment, of which servers get the plain base; `state` is where logins are kept;
    `authorize` is None where no person can be shown anything."""

    def __init__(
        self,
        *,
        http: GuardedHttp,
        environ: Mapping[str, str],
        state: Path,
        workspace: str,
        enclosure: Enclosure | None,
        authorize: Authorize | None = None,
    ) -> None:
        self._http, self._state, self._workspace = http, state, workspace
        self._base = {**process.inherited(environ), BEHIND: "1"}
        self._enclosure, self._authorize = enclosure, authorize

    def __call__(self, spec: ServerSpec, veil: Scrubber) -> Transport:
        """Nothing is started or connected yet. Raises ServerAway for what cannot be."""
        if spec.kind == "stdio":
            return self._piped(spec)
        from toolreeve.upstream.transports.http_client import new_line

        return new_line(spec, http=self._http, state=self._state, authorize=self._authorize, veil=veil)

    def _piped(self, spec: ServerSpec) -> Transport:
        if spec.command is None:
            raise ServerUnavailable("it has no command")
        directory = spec.cwd or self._workspace
        if not Path(directory).is_dir():
            where = f"where {spec.name!r} is to start ({spec.source})"
            raise ServerUnavailable(f"the folder {directory!r} does not exist, {where}")
        place = None
        if spec.sandbox is not None:
            try:
                grant = read_grant(spec.sandbox)
            except ValueError as problem:
                raise ServerUnavailable(f"{spec.source}: {problem}") from None
            place = SandboxPlace(grant=grant, workspace=self._workspace, enclosure=self._enclosure)
        return StdioTransport(
            (spec.command, *spec.args),
            environment=spec.env if place else {**self._base, **spec.env},  # the sandbox has a base of its own
            directory=directory,
            place=place,
        )
