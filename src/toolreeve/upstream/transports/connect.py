"""Creates the transport of a configured server: stdio, sandboxed or HTTP.

A server with a `sandbox` table is never started outside of it, and HTTP always goes through the network guard.
"""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from toolreeve.core.secrets.scrubber import Scrubber
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.upstream.server_spec import BEHIND, ServerSpec
from toolreeve.upstream.transports import process
from toolreeve.upstream.transports.sandboxed import SandboxPlacement, ServiceSandbox, read_grant
from toolreeve.upstream.transports.stdio import StdioTransport
from toolreeve.upstream.transports.transport import ServerUnavailable, Transport

Authorize = Callable[[str], Awaitable[None]]
"""Shows a person the URL at which to log in."""


class TransportFactory:
    """`environ` is our own environment, of which servers get a small base; `state` is where logins are stored.

    `sandbox` is None where this machine's sandbox cannot run servers, `authorize` where no person can log in.
    """

    def __init__(
        self,
        *,
        http: GuardedHttp,
        environ: Mapping[str, str],
        state: Path,
        workspace: str,
        sandbox: ServiceSandbox | None,
        authorize: Authorize | None = None,
    ) -> None:
        self._http = http
        self._state = state
        self._workspace = workspace
        self._base = {**process.inherited(environ), BEHIND: "1"}
        self._sandbox = sandbox
        self._authorize = authorize

    def __call__(self, spec: ServerSpec, scrubber: Scrubber) -> Transport:
        """Starts and connects nothing yet. Raises ServerUnavailable for a configuration that cannot work."""
        if spec.kind == "stdio":
            return self._stdio(spec)
        from toolreeve.upstream.transports.http_client import new_http_transport

        return new_http_transport(
            spec, http=self._http, state=self._state, authorize=self._authorize, scrubber=scrubber
        )

    def _stdio(self, spec: ServerSpec) -> Transport:
        if spec.command is None:
            raise ServerUnavailable("it has no command")
        directory = spec.cwd or self._workspace
        if not Path(directory).is_dir():
            raise ServerUnavailable(f"its cwd {directory!r} does not exist ({spec.source})")
        argv = (spec.command, *spec.args)
        if spec.sandbox is None:
            return StdioTransport(argv, environment={**self._base, **spec.env}, directory=directory)
        try:
            grant = read_grant(spec.sandbox)
        except ValueError as problem:
            raise ServerUnavailable(f"{spec.source}: {problem}") from None
        placement = SandboxPlacement(grant=grant, workspace=self._workspace, sandbox=self._sandbox)
        # The sandbox has a base environment of its own.
        return StdioTransport(argv, environment=spec.env, directory=directory, placement=placement)
