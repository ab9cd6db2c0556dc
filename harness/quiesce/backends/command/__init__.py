"""The ``command`` backend: any program that speaks the wire protocol (``docs/reference/wire_protocol.md``).

Bottom-up: ``objects`` reads strict JSON, ``observations`` and ``wire`` say what the protocol means, ``pipes`` how the
pipes of a driver are used (``pipe_polling``; on Windows ``pipe_threads``), ``program`` holds its process and watchdog,
``context`` and ``backend`` meet the contract.
"""

from quiesce.backends.command.backend import CommandBackend, parse_specification, serve

__all__ = ["CommandBackend", "parse_specification", "serve"]
