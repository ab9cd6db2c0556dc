"""A driver for any installed backend: ``python -m quiesce.backends.serving NAME`` speaks the wire protocol for it.

So a backend runs in a process of its own (``--backend served:cupy``): when a device
fails for good, or a library crashes, that process is gone and nothing else is. The protocol is in
``docs/reference/wire_protocol.md``.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import BinaryIO, Final, TypeAlias

from quiesce.allocators.cases import ends_of, slots_made
from quiesce.backends.registry import load_backend
from quiesce.model.backend import Backend, Context, Description, DeviceProfile, Flavour, Initialization, Reply
from quiesce.model.errors import QuiesceError
from quiesce.model.gauges import Readings
from quiesce.model.observations import Observation
from quiesce.model.operations import Drop, Mark, Slot
from quiesce.model.outcomes import INVALID_VALUE, Allocated, Done, Outcome, OutOfMemory, Rejected, Unsupported
from quiesce.model.requests import RequestError, parse_request

Json: TypeAlias = dict[str, object]

OBSERVATIONS_BYTES_MAX: Final = 48 << 10
"""How much of a line observations may take: a line has 64 KiB."""
TITLE_CHARACTERS_MAX: Final = 100
REASON_CHARACTERS_MAX: Final = 2000
_WORD = re.compile(r"(?<!^)(?=[A-Z])")


def encode_outcome(outcome: Outcome) -> Json:
    """Return an outcome as the protocol writes it."""
    match outcome:
        case Allocated(address):
            return {"outcome": "allocated", "address": hex(address)}
        case Done():
            return {"outcome": "done"}
        case OutOfMemory():
            return {"outcome": "out of memory"}
        case Rejected(code):
            return {"outcome": "rejected", "code": code}
        case Unsupported(reason):
            return {"outcome": "unsupported", "reason": reason[:REASON_CHARACTERS_MAX]}


def encode_observation(observation: Observation) -> Json:
    """Return an observation as the protocol writes it: its class in kebab case, its fields, sizes without unit."""
    fields: Json = {"seen": _WORD.sub("-", type(observation).__name__).lower()}
    for field in dataclasses.fields(observation):
        value = getattr(observation, field.name)
        is_address = field.name.endswith("address")
        fields[field.name.removesuffix("_bytes")] = hex(value) if is_address else value
    return fields


def encode_hello(description: Description) -> Json:
    """Return what a backend says about itself as the protocol writes it."""
    return {
        "protocol": 1,
        "name": description.name[:TITLE_CHARACTERS_MAX],
        "version": description.version[:TITLE_CHARACTERS_MAX],
        "capabilities": sorted(description.capabilities),
        "promises": sorted(description.promises),
        "gauges": {gauge: sorted(sources) for gauge, sources in sorted(description.gauges.items())},
        "alignment": description.alignment_bytes,
        "chunk": description.chunk_bytes,
        "footprint_factor": description.footprint_factor,
    }


def encode_gauges(readings: Readings) -> Json:
    """Return readings as the protocol writes them."""
    gauges: dict[str, dict[str, int]] = {}
    for (gauge, source), value in sorted(readings.items()):
        gauges.setdefault(gauge, {})[source] = value
    return {"gauges": gauges}


def read_profile(request: str) -> DeviceProfile:
    """Return the profile of an ``open`` line. Raises :class:`ValueError` and :class:`KeyError` for another line."""
    fields = dict(word.split("=", 1) for word in request.split()[1:])
    return DeviceProfile(
        capacity_bytes=int(fields["capacity"]),
        pinned_capacity_bytes=int(fields["pinned-capacity"]),
        alignment_bytes=int(fields["alignment"]),
        granularity_bytes=int(fields["granularity"]),
        devices=int(fields["devices"]),
        flavour=Flavour(fields["flavour"]),
        initialization=Initialization(fields["initialization"]),
        provenance="the harness",
    )


class Served:
    """One backend behind the protocol: a request line in, the fields of a reply out."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._context: Context | None = None
        self._readings: Readings = {}
        self._untold: tuple[Observation, ...] = ()
        self._taken: set[Slot] = set()

    def reply(self, request: str) -> Json:
        """Answer one line. Raises what the backend raises: the harness sees the process end, and why."""
        match request.partition(" ")[0]:
            case "hello":
                return encode_hello(self._backend.describe())
            case "open":
                try:
                    self._context = self._backend.open(read_profile(request))
                except QuiesceError as error:
                    return encode_outcome(Unsupported(str(error)))
                # A mark does nothing, so its answer tells of the opening alone.
                self._untold = self._context.perform(Mark("opened")).observations
                return self._told(encode_outcome(Done()))
            case "more":
                return self._told({})
        if self._context is None and request != "gauges":
            return encode_outcome(Unsupported("nothing is open"))
        return self._answer(request)

    def _answer(self, request: str) -> Json:
        context = self._context
        if request == "gauges":
            return encode_gauges(context.readings() if context is not None else self._readings)
        assert context is not None
        if request == "close":
            closing = context.close()
            self._context, self._readings, self._untold = None, closing.readings, closing.observations
            self._taken.clear()
            return self._told(encode_outcome(Done()))
        try:
            operation = parse_request(request)
        except RequestError as error:
            return encode_outcome(Unsupported(str(error)))
        made = slots_made(operation)
        if not self._taken.isdisjoint(made):
            return encode_outcome(Rejected(INVALID_VALUE))
        reply: Reply = context.perform(operation)
        self._untold = reply.observations
        self._taken.difference_update(ends_of(operation))
        if isinstance(operation, Drop):  # perhaps of the last hold: then the node is gone
            self._taken.discard(operation.slot)
        if isinstance(reply.outcome, Allocated | Done):
            self._taken.update(made)
        return self._told(encode_outcome(reply.outcome))

    def _told(self, fields: Json) -> Json:
        """Add as many observations as fit in a line."""
        told: list[Json] = []
        size_bytes = 0
        for seen in self._untold:
            encoded = encode_observation(seen)
            size_bytes += len(json.dumps(encoded, default=_plain))
            if told and size_bytes > OBSERVATIONS_BYTES_MAX:
                break
            told.append(encoded)
        self._untold = self._untold[len(told) :]
        if told:
            fields = {**fields, "observations": told}
        return {**fields, "more": True} if self._untold else fields


def serve(backend: Backend, requests: Iterable[bytes], replies: BinaryIO) -> None:
    """Answer every line until ``quit`` or the end of the input."""
    served = Served(backend)
    for request in _texts(requests):
        if request == "quit":
            return
        _write(served.reply(request), replies)


def serve_again(backend: Backend, requests: Iterable[bytes], replies: BinaryIO) -> None:
    """Answer as :func:`serve` does, each context in a child of this process: what it has loaded is loaded once.

    A child is as fresh as the first, and ends as a process of its own would: this function returns in it. ``requests``
    must not be read ahead of what was answered, which the protocol sees to. The system must have ``fork``, and nothing
    that was loaded may have started a thread that it needs.
    """
    lines = iter(requests)
    for line in lines:
        request = _text(line)
        if request == "quit":
            return
        if not request.startswith("open "):
            hello = {"again": True} if request.startswith("hello") else {}
            _write({**Served(backend).reply(request), **hello}, replies)
            continue
        told, tells = os.pipe()
        child = os.fork()
        if not child:
            os.close(told)
            _serve_one(backend, chain([line], lines), replies, tells)
            return
        os.close(tells)
        if not _ended_for_another(child, told):
            return
        _write(encode_outcome(Done()), replies)


def _serve_one(backend: Backend, requests: Iterable[bytes], replies: BinaryIO, tells: int) -> None:
    """Serve until ``again``, and tell so; or as :func:`serve` does."""
    served = Served(backend)
    for request in _texts(requests):
        if request == "again":
            os.write(tells, b"!")
        if request in ("again", "quit"):
            return
        _write(served.reply(request), replies)


def _ended_for_another(child: int, told: int) -> bool:
    """Wait for a child; say whether it was asked for another. One that ends badly takes this process with it."""
    with open(told, "rb") as pipe:
        another = bool(pipe.read())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        with suppress(OSError):  # SIGKILL has no other way to end a process
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    if code:
        sys.exit(code)
    return another


def _text(line: bytes) -> str:
    return line.decode("utf-8").rstrip("\r\n")


def _texts(lines: Iterable[bytes]) -> Iterator[str]:
    return map(_text, lines)


def _write(reply: Json, replies: BinaryIO) -> None:
    replies.write(json.dumps(reply, default=_plain).encode() + b"\n")
    replies.flush()


def _plain(value: object) -> object:
    if isinstance(value, enum.Enum):
        return value.value
    raise TypeError(f"{value!r} is no JSON")


def main(arguments: list[str]) -> int:
    """Serve the backend that the one argument names; return the exit code."""
    if len(arguments) != 1:
        sys.stderr.write("write: python -m quiesce.backends.serving BACKEND\n")
        return 2
    replies = sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints is not protocol
    try:
        backend = load_backend(arguments[0])
        backend.describe()
    except QuiesceError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    serve(backend, sys.stdin.buffer, replies)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
