"""The wire protocol: lines out, one JSON object per line back. No process, no pipe and no clock in here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from quiesce.backend import Capability, Description, DeviceProfile, Promise
from quiesce.backends.command.objects import Fields, WireError, preview, read_object
from quiesce.backends.command.observations import read_observation
from quiesce.cases.effects import ends_of, slots_made, slots_used
from quiesce.gauges import Gauge, Readings, Source
from quiesce.observations import Observation
from quiesce.operations import Operation
from quiesce.outcomes import Allocated, Done, Outcome, OutOfMemory, Rejected, Unsupported
from quiesce.request_format import format_request
from quiesce.requests import is_slot

PROTOCOL: Final = 1
LINE_BYTES_MAX: Final = 64 << 10
"""The longest line in either direction, its line ending included."""

HELLO: Final = f"hello {PROTOCOL}"
GAUGES: Final = "gauges"
MORE: Final = "more"
CLOSE: Final = "close"
AGAIN: Final = "again"
BATCH: Final = "batch"
QUIT: Final = "quit"

_GAUGE_LOWEST: Final = -(1 << 63)  # a counter that fell below zero is the oracle's to judge
_DEFAULTS: Final = Description("", "", frozenset())
_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}\Z")
_OUTCOMES: Final = ("allocated", "done", "out of memory", "rejected", "unsupported")


class UnsendableRequest(ValueError):
    """A request cannot be said in one line of the protocol; the text says why."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The observations of one line; ``more``: the driver has further ones, and wants to be asked for them."""

    observations: tuple[Observation, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply to ``open``, ``close`` or an operation."""

    outcome: Outcome
    seen: Seen


@dataclass(frozen=True, slots=True)
class Hello:
    """What a driver says about itself.

    ``again``: one process serves one context after the other. ``batch``: it takes several requests at once.
    """

    description: Description
    again: bool
    batch: bool


def open_request(profile: DeviceProfile) -> str:
    """Return the line that opens a context on ``profile``; sizes in bytes."""
    return (
        f"open capacity={profile.capacity_bytes} pinned-capacity={profile.pinned_capacity_bytes} "
        f"alignment={profile.alignment_bytes} granularity={profile.granularity_bytes} devices={profile.devices} "
        f"flavour={profile.flavour} initialization={profile.initialization}"
    )


def operation_request(operation: Operation) -> str:
    """Return the line for an operation.

    Raises :class:`UnsendableRequest` where a slot holds what no line can, or the line would be too long.
    """
    line = format_request(operation)
    for slot in (*slots_made(operation), *slots_used(operation), *ends_of(operation)):
        if not is_slot(slot):
            raise UnsendableRequest(f"the slot {preview(slot)} is none of the wire protocol")
    if (length := len(line.encode()) + 1) > LINE_BYTES_MAX:
        raise UnsendableRequest(
            f"the request takes {length:,} bytes; a line of the wire protocol has at most {LINE_BYTES_MAX:,}"
        )
    return line


def read_hello(line: bytes, name: str) -> Hello:
    """Return what a driver says about itself; ``name`` is the backend's. Raises :class:`WireError`."""
    fields = read_object(line)
    protocol = fields.whole("protocol")
    if protocol != PROTOCOL:
        raise WireError(f"the driver program speaks protocol {protocol}, not {PROTOCOL}")
    described = Description(
        name=name,
        version=f"{_title(fields, 'name')} {_title(fields, 'version')}",
        capabilities=fields.members("capabilities", Capability),
        promises=fields.members("promises", Promise),
        gauges=_declared_gauges(fields.value("gauges")),
        alignment_bytes=fields.whole("alignment", 1, _DEFAULTS.alignment_bytes),
        chunk_bytes=fields.whole("chunk", 0, _DEFAULTS.chunk_bytes),
        footprint_factor=fields.whole("footprint_factor", 1, _DEFAULTS.footprint_factor),
    )
    if described.alignment_bytes & (described.alignment_bytes - 1):
        raise WireError(f"the reply: 'alignment' is {described.alignment_bytes}, not a power of two")
    again, batch = fields.flag("again", default=False), fields.flag("batch", default=False)
    fields.finish()
    return Hello(described, again, batch)


def read_answer(line: bytes) -> Answer:
    """Return the reply to ``open``, ``close`` or an operation. Raises :class:`WireError`."""
    fields = read_object(line)
    answer = Answer(_outcome(fields), _seen(fields))
    fields.finish()
    return answer


def read_more(line: bytes) -> Seen:
    """Return the reply to ``more``: further observations, at least one. Raises :class:`WireError`."""
    fields = read_object(line)
    seen = _seen(fields)
    fields.finish()
    if not seen.observations:
        raise WireError("the reply holds no observation")
    return seen


def read_gauges(line: bytes, description: Description) -> Readings:
    """Return the reply to ``gauges``: exactly those that hello declared. Raises :class:`WireError`."""
    fields = read_object(line)
    gauges = Fields(fields.value("gauges"), "'gauges'")
    readings: dict[tuple[Gauge, Source], int] = {}
    for gauge, sources in description.gauges.items():
        counts = Fields(gauges.value(gauge), f"gauge '{gauge}'")
        for source in sorted(sources):
            readings[gauge, source] = counts.whole(source, _GAUGE_LOWEST)
        counts.finish()
    gauges.finish()
    fields.finish()
    return readings


def _title(fields: Fields, key: str) -> str:
    text = fields.text(key)
    if not text or not text.isprintable() or len(text) > 100:
        raise WireError(f"the reply: '{key}' is {preview(text)}, not 1 to 100 printable characters")
    return text


def _declared_gauges(value: object) -> dict[Gauge, frozenset[Source]]:
    fields = Fields(value, "'gauges'")
    declared: dict[Gauge, frozenset[Source]] = {}
    for name in fields.keys():  # noqa: SIM118 - Fields is no mapping
        if name not in set(Gauge):
            raise WireError(f"{preview(name)} is not a gauge; the gauges are {', '.join(Gauge)}")
        declared[Gauge(name)] = fields.members(name, Source)
        if not declared[Gauge(name)]:
            raise WireError(f"gauge '{name}' has no source; write claim or ledger")
    return declared


def _outcome(fields: Fields) -> Outcome:
    match word := fields.text("outcome"):
        case "allocated":
            return Allocated(fields.address("address"))
        case "done":
            return Done()
        case "out of memory":
            return OutOfMemory()
        case "rejected":
            code = fields.text("code")
            if not _CODE.match(code):
                raise WireError(f"the reply: 'code' is {preview(code)}, not one word such as invalid-value")
            return Rejected(code)
        case "unsupported":
            return Unsupported(fields.text("reason", ""))
    raise WireError(f"the outcome {preview(word)} is not one of {', '.join(_OUTCOMES)}")


def _seen(fields: Fields) -> Seen:
    listed = fields.items("observations") if "observations" in fields else ()
    observations = tuple(read_observation(item, index) for index, item in enumerate(listed))
    return Seen(observations, fields.flag("more", default=False))
