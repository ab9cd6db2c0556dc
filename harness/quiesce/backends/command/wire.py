"""The wire protocol: lines out, one JSON object per line back. No process, no pipe and no clock in here.

Replies are read strictly, field by field, every surprise a :class:`WireError`. What Python's ``json`` lets pass and RFC
8259 does not promise (duplicate keys, ``NaN``) is refused, and so is an unknown key: a mistyped ``"obsevations"`` must
not read as "nothing was seen".

An observation is ``{"seen": "backing-allocated", "address": "0x…", "size": N}``: ``seen`` is the observation's class in
kebab case, the other keys are its fields, sizes without ``_bytes``; fields with a default may be left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NoReturn, TypeVar

from quiesce.allocators.cases import ends_of, slots_made, slots_used
from quiesce.model import observations as seen
from quiesce.model.backend import Capability, Description, DeviceProfile, Promise
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.observations import DEFAULT_STREAM, HandleKind, Observation
from quiesce.model.operations import MemoryKind, Operation
from quiesce.model.outcomes import Allocated, Done, Outcome, OutOfMemory, Rejected, Unsupported
from quiesce.model.requests import format_request, is_slot

ADDRESS_MAX: Final = (1 << 64) - 1
"""The largest address and the largest size that a driver can name: 64 bits."""
PREVIEW_CHARACTERS: Final = 160

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{1,16}\Z")
_Member = TypeVar("_Member", bound=StrEnum)


class WireError(ValueError):
    """A driver's line is not what the protocol allows; the text says what was read and what belongs there."""


def preview(value: object) -> str:
    """Return a short printable form of something a driver wrote, safe for a terminal."""
    try:
        shown = ascii(value)
    except RecursionError:  # json reads a little deeper than ascii() writes
        shown = f"a {type(value).__name__} nested too deeply to show"
    return shorten(shown.removeprefix("b") if isinstance(value, bytes) else shown)


def shorten(text: str) -> str:
    """Return ``text``, cut where it would drown a message."""
    return text if len(text) <= PREVIEW_CHARACTERS else f"{text[:PREVIEW_CHARACTERS]}… ({len(text)} characters)"


class Fields:
    """The fields of one JSON object, taken one by one; :meth:`finish` refuses those left over."""

    def __init__(self, value: object, where: str) -> None:
        """Begin to read ``value``, which the reading empties; ``where`` names it in errors.

        Raises :class:`WireError` unless it is an object.
        """
        if not isinstance(value, dict):
            raise WireError(f"{where} is {preview(value)}, not a JSON object")
        self._fields: dict[str, object] = value
        self._where = where

    def __contains__(self, key: str) -> bool:
        return key in self._fields

    def finish(self) -> None:
        """Refuse what nobody took. Raises :class:`WireError`."""
        for key in self._fields:
            raise WireError(f"{self._where} has the unknown key {preview(key)}")

    def value(self, key: str) -> object:
        """Take a field of any type. Raises :class:`WireError` where it is missing."""
        if key not in self._fields:
            raise WireError(f"{self._where} lacks the key '{key}'")
        return self._fields.pop(key)

    def text(self, key: str, default: str | None = None) -> str:
        """Take a string, or ``default`` where there is no such key."""
        if default is not None and key not in self._fields:
            return default
        value = self.value(key)
        if not isinstance(value, str) or not _encodable(value):
            return self._refuse(key, value, "a string")
        return value

    def optional_text(self, key: str) -> str | None:
        """Take a string or null."""
        if key in self._fields and self._fields[key] is None:
            del self._fields[key]
            return None
        return self.text(key)

    def flag(self, key: str, *, default: bool) -> bool:
        """Take true or false, or ``default`` where there is no such key."""
        value = self.value(key) if key in self._fields else default
        return value if isinstance(value, bool) else self._refuse(key, value, "true or false")

    def whole(self, key: str, lowest: int = 0, default: int | None = None) -> int:
        """Take a whole number from ``lowest`` to 2^64 - 1, or ``default`` where there is no such key."""
        if default is not None and key not in self._fields:
            return default
        value = self.value(key)
        if type(value) is not int or not lowest <= value <= ADDRESS_MAX:
            return self._refuse(key, value, f"a whole number from {lowest} to 2^64 - 1")
        return value

    def address(self, key: str) -> int:
        """Take an address: a string such as ``"0x7f00"``, because not every JSON library keeps 64 bits of a number."""
        value = self.value(key)
        if not isinstance(value, str) or not _ADDRESS.match(value):
            return self._refuse(key, value, 'a string of up to 16 hexadecimal digits such as "0x7f00"')
        return int(value, 16)

    def member(self, key: str, kind: type[_Member], default: _Member | None = None) -> _Member:
        """Take one word of an enumeration, or ``default`` where there is no such key."""
        if default is not None and key not in self._fields:
            return default
        value = self.value(key)
        if not isinstance(value, str) or value not in set(kind):
            return self._refuse(key, value, f"one of {', '.join(kind)}")
        return kind(value)

    def members(self, key: str, kind: type[_Member]) -> frozenset[_Member]:
        """Take a list of words of an enumeration."""
        taken = self.items(key)
        for word in taken:
            if not isinstance(word, str) or word not in set(kind):
                self._refuse(key, word, f"only words of {', '.join(kind)}", verb="holds")
        return frozenset(kind(word) for word in taken if isinstance(word, str))

    def items(self, key: str) -> list[object]:
        """Take a list."""
        value = self.value(key)
        return value if isinstance(value, list) else self._refuse(key, value, "a list")

    def keys(self) -> tuple[str, ...]:
        """Return the keys not yet taken, in the order of the line."""
        return tuple(self._fields)

    def _refuse(self, key: str, value: object, wanted: str, verb: str = "is") -> NoReturn:
        raise WireError(f"{self._where}: '{key}' {verb} {preview(value)}, not {wanted}")


def read_object(line: bytes) -> Fields:
    """Return the fields of the one JSON object that ``line`` holds (without its line ending).

    Raises :class:`WireError` for bad UTF-8, anything but one object, duplicate keys, ``NaN`` and its like,
    numbers too long to read, and nesting too deep to read.
    """
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WireError(f"{preview(line)} is not UTF-8 (byte {error.start})") from None
    try:
        value = _DECODER.decode(text)
    except WireError:
        raise
    except RecursionError:
        raise WireError(f"{preview(line)} is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise WireError(f"{preview(line)} is not JSON ({error.msg} at column {error.colno})") from None
    except ValueError:  # an integer beyond sys.get_int_max_str_digits()
        raise WireError(f"{preview(line)} holds a number too long to read") from None
    return Fields(value, "the reply")


def _encodable(text: str) -> bool:
    """Whether a report can hold the text: JSON can name half of a surrogate pair, UTF-8 cannot."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for index, key in enumerate(keys) if key in keys[:index])
        raise WireError(f"the key {preview(twice)} appears twice in one object")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise WireError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
"""Made once: ``json.loads`` would make one for each line."""


def _kind(fields: Fields) -> MemoryKind:
    return fields.member("kind", MemoryKind, MemoryKind.DEVICE)


def _device(fields: Fields) -> int:
    return fields.whole("device", default=0)


def _copy(fields: Fields) -> Observation:
    source, destination = fields.address("source_address"), fields.address("destination_address")
    return seen.CopyEnqueued(source, destination, fields.whole("size"), fields.text("stream", DEFAULT_STREAM))


def _waited(fields: Fields) -> Observation:
    event, waiter = fields.text("event"), fields.optional_text("waiter")
    return seen.EventWaited(event, waiter, fields.flag("stream_alive", default=True))


READERS: Final[Mapping[str, Callable[[Fields], Observation]]] = {
    "backing-allocated": lambda f: seen.BackingAllocated(f.address("address"), f.whole("size"), _kind(f), _device(f)),
    "backing-freed": lambda f: seen.BackingFreed(f.address("address"), f.whole("size"), _kind(f), _device(f)),
    "backing-refused": lambda f: seen.BackingRefused(f.whole("size"), _kind(f), _device(f)),
    "copy-enqueued": _copy,
    "event-recorded": lambda f: seen.EventRecorded(f.text("event"), f.text("stream")),
    "event-waited": _waited,
    "event-completed": lambda f: seen.EventCompleted(f.text("event")),
    "stream-synchronized": lambda f: seen.StreamSynchronized(f.text("stream")),
    "device-synchronized": lambda f: seen.DeviceSynchronized(_device(f)),
    "handle-created": lambda f: seen.HandleCreated(f.member("kind", HandleKind), f.text("name")),
    "handle-destroyed": lambda f: seen.HandleDestroyed(f.member("kind", HandleKind), f.text("name")),
}
"""What reads each kind of observation, by its name on the wire."""


def read_observation(value: object, index: int) -> Observation:
    """Return the observation at ``index`` of a reply. Raises :class:`WireError`."""
    fields = Fields(value, f"observation {index}")
    name = fields.text("seen")
    if name not in READERS:
        raise WireError(f"observation {index}: {preview(name)} is not one of {', '.join(READERS)}")
    observation = READERS[name](fields)
    fields.finish()
    return observation


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
