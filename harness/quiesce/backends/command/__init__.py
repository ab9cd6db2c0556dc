"""The ``command`` backend: any program that speaks the wire protocol (``docs/reference/wire_protocol.md``).

Bottom-up: ``wire`` reads and writes the lines of the protocol, ``pipes`` uses the pipes of a driver, ``program`` holds
its process and watchdog, and ``backend`` meets the contract.
"""

from quiesce.backends.command.backend import CommandBackend, CommandContext, parse_specification, serve
from quiesce.backends.command.wire import AGAIN, CLOSE, LINE_BYTES_MAX, shorten

__all__ = [
    "AGAIN",
    "CLOSE",
    "LINE_BYTES_MAX",
    "CommandBackend",
    "CommandContext",
    "parse_specification",
    "serve",
    "shorten",
]
