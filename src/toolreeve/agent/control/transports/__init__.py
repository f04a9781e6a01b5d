"""Transports of the control protocol."""

from toolreeve.agent.control.transports.http import HTTPTransport
from toolreeve.agent.control.transports.memory import InMemoryTransport
from toolreeve.agent.control.transports.stdio import StdioControlTransport as StdioTransport
from toolreeve.agent.control.transports.terminal import CLITransport
from toolreeve.agent.control.transports.transport import ControlTransport as Transport

__all__ = ["CLITransport", "HTTPTransport", "InMemoryTransport", "StdioTransport", "Transport"]
