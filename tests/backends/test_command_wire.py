"""The protocol's text: what a line of a driver means, and that no line at all gets past as anything but a WireError."""

import dataclasses
import json
from contextlib import suppress
from enum import StrEnum
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiesce.backends.command import wire
from quiesce.backends.command import wire as observations
from quiesce.backends.command.wire import WireError, read_object
from quiesce.model import observations as seen
from quiesce.model.backend import Capability, Description, DeviceProfile, Flavour, Initialization, Promise
from quiesce.model.gauges import Gauge, Source
from quiesce.model.observations import HandleKind, Observation
from quiesce.model.operations import Allocate, Free, Launch, MemoryKind, Operation
from quiesce.model.outcomes import Allocated, Done, Outcome, OutOfMemory, Rejected, Unsupported

HELLO: dict[str, object] = {
    "protocol": 1,
    "name": "pool",
    "version": "2.1",
    "capabilities": ["memory"],
    "promises": ["trims-to-zero"],
    "gauges": {"reserved": ["claim", "ledger"], "live": ["claim"]},
}


def line(value: object) -> bytes:
    return json.dumps(value).encode()


def test_hello_describes_the_driver_with_the_contract_s_defaults() -> None:
    expected = Description(
        name="command:pool",
        version="pool 2.1",
        capabilities=frozenset({Capability.MEMORY}),
        promises=frozenset({Promise.TRIMS_TO_ZERO}),
        gauges={Gauge.RESERVED: frozenset(Source), Gauge.LIVE: frozenset({Source.CLAIM})},
    )
    assert wire.read_hello(line(HELLO), "command:pool") == wire.Hello(expected, again=False, batch=False)


def test_hello_may_state_alignment_chunk_and_footprint() -> None:
    described = wire.read_hello(line({**HELLO, "alignment": 16, "chunk": 0, "footprint_factor": 1}), "d").description
    assert (described.alignment_bytes, described.chunk_bytes, described.footprint_factor) == (16, 0, 1)


def test_hello_may_say_that_one_process_serves_again() -> None:
    assert wire.read_hello(line({**HELLO, "again": True}), "d").again


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"protocol": 2}, "speaks protocol 2"),
        ({"protocol": True}, "'protocol' is True"),
        ({"name": ""}, "1 to 100 printable"),
        ({"again": 1}, "'again' is 1, not true or false"),
        ({"name": "bell\a"}, "1 to 100 printable"),
        ({"version": "1" * 101}, "1 to 100 printable"),
        ({"capabilities": "memory"}, "not a list"),
        ({"capabilities": ["memroy"]}, "'memroy'"),
        ({"capabilities": [["memory"]]}, "'capabilities' holds"),
        ({"promises": {}}, "not a list"),
        ({"gauges": []}, "not a JSON object"),
        ({"gauges": {"resreved": ["claim"]}}, "'resreved' is not a gauge"),
        ({"gauges": {"live": []}}, "no source"),
        ({"gauges": {"live": ["guess"]}}, "'guess'"),
        ({"alignment": 24}, "not a power of two"),
        ({"alignment": 0}, "whole number from 1"),
        ({"footprint_factor": 1.5}, "1.5"),
        ({"chunk": -1}, "-1"),
        ({"chunks": 1}, "unknown key 'chunks'"),
    ],
)
def test_hello_that_declares_nonsense_is_refused(change: dict[str, object], complaint: str) -> None:
    with pytest.raises(WireError) as error:
        wire.read_hello(line({**HELLO, **change}), "d")
    assert complaint in str(error.value)


@pytest.mark.parametrize("key", sorted(HELLO))
def test_hello_lacks_nothing(key: str) -> None:
    with pytest.raises(WireError, match=f"lacks the key '{key}'"):
        wire.read_hello(line({name: value for name, value in HELLO.items() if name != key}), "d")


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ({"outcome": "allocated", "address": "0x7f00"}, Allocated(0x7F00)),
        ({"outcome": "allocated", "address": "0xFFFFFFFFFFFFFFFF"}, Allocated((1 << 64) - 1)),
        ({"outcome": "done"}, Done()),
        ({"outcome": "out of memory"}, OutOfMemory()),
        ({"outcome": "rejected", "code": "cudaErrorWeird"}, Rejected("cudaErrorWeird")),
        ({"outcome": "unsupported"}, Unsupported()),
        ({"outcome": "unsupported", "reason": "no streams"}, Unsupported("no streams")),
    ],
)
def test_every_outcome_is_read(reply: dict[str, object], outcome: Outcome) -> None:
    assert wire.read_answer(line(reply)) == wire.Answer(outcome, wire.Seen((), more=False))


BAD_ANSWERS: list[tuple[bytes, str]] = [
    (b"", "not JSON"),
    (b"Segmentation fault", "not JSON"),
    (b"\xff\xfe", "not UTF-8"),
    (b"[]", "not a JSON object"),
    (b"null", "not a JSON object"),
    (b"{}", "lacks the key 'outcome'"),
    (b'{"outcome":"done"} {"outcome":"done"}', "not JSON (Extra data"),
    (b'{"outcome":"don"}', "'don' is not one of"),
    (b'{"outcome":1}', "'outcome' is 1"),
    (b'{"outcome":"done","outcome":"done"}', "appears twice"),
    (b'{"outcome":"done","obsevations":[]}', "unknown key 'obsevations'"),
    (b'{"outcome":"done","address":"0x0"}', "unknown key 'address'"),
    (b'{"outcome":"allocated"}', "lacks the key 'address'"),
    (b'{"outcome":"allocated","address":4096}', "'address' is 4096"),
    (b'{"outcome":"allocated","address":"4096"}', "hexadecimal"),
    (b'{"outcome":"allocated","address":"0x10000000000000000"}', "hexadecimal"),
    (b'{"outcome":"allocated","address":"0x"}', "hexadecimal"),
    (b'{"outcome":"rejected"}', "lacks the key 'code'"),
    (b'{"outcome":"rejected","code":"two words"}', "one word"),
    (b'{"outcome":"unsupported","reason":"\\ud800"}', "not a string"),
    (b'{"outcome":"done","more":1}', "'more' is 1"),
    (b'{"outcome":"done","observations":{}}', "not a list"),
    (b'{"outcome":"done","observations":[1]}', "observation 0 is 1"),
    (b'{"outcome":NaN}', "NaN is not JSON"),
    (b'{"outcome":"done","observations":[{"seen":"backing-refused","size":-Infinity}]}', "-Infinity is not JSON"),
    (b'{"outcome":' + b"9" * 5000 + b"}", "number too long"),
    (b"[" * 60_000, "nested too deeply"),
    (b'{"a":' * 10_000, "nested too deeply"),
]


@pytest.mark.parametrize(("data", "complaint"), BAD_ANSWERS, ids=range(len(BAD_ANSWERS)))
def test_a_bad_answer_is_refused_with_what_is_wrong(data: bytes, complaint: str) -> None:
    with pytest.raises(WireError) as error:
        wire.read_answer(data)
    assert complaint in str(error.value)
    assert len(str(error.value)) < 500, "a message is no dump"
    assert str(error.value).isprintable()


def test_no_depth_of_nesting_gets_past() -> None:
    for depth in (*range(20, 1100, 7), 30_000):
        with pytest.raises(WireError):
            wire.read_answer(b"[" * depth + b"]" * depth)
        with pytest.raises(WireError):
            wire.read_answer(b'{"outcome":' * depth + b"0" + b"}" * depth)


def samples(kind: type[Observation]) -> Observation:
    """Make an observation whose every field differs from its default."""
    values = {
        "address": 0x10,
        "size_bytes": 3,
        "kind": HandleKind.EVENT if kind in (seen.HandleCreated, seen.HandleDestroyed) else MemoryKind.PINNED,
        "device": 1,
        "source_address": 0x20,
        "destination_address": (1 << 64) - 1,
        "stream": "s",
        "event": "internal:7",
        "waiter": "t",
        "stream_alive": False,
        "name": "e",
    }
    return kind(**{field.name: values[field.name] for field in dataclasses.fields(kind)})  # type: ignore[arg-type]


def encode(observation: Observation) -> dict[str, object]:
    """Write an observation by the rule of the protocol's text."""
    words = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in type(observation).__name__)
    encoded: dict[str, object] = {"seen": words.removeprefix("-")}
    for field in dataclasses.fields(observation):
        value = getattr(observation, field.name)
        shown = str(value) if isinstance(value, StrEnum) else hex(value) if field.name.endswith("address") else value
        encoded[field.name.removesuffix("_bytes")] = shown
    return encoded


@pytest.mark.parametrize("kind", get_args(Observation))
def test_every_observation_crosses_the_wire(kind: type[Observation]) -> None:
    observation = samples(kind)
    reply = {"outcome": "done", "observations": [encode(observation)]}
    assert wire.read_answer(line(reply)).seen.observations == (observation,)


def test_every_observation_of_the_vocabulary_has_a_reader() -> None:
    assert len(observations.READERS) == len(get_args(Observation))


def test_fields_with_a_default_may_be_left_out() -> None:
    reply = {"observations": [{"seen": "backing-allocated", "address": "0x1", "size": 2}]}
    assert wire.read_more(line(reply)).observations == (seen.BackingAllocated(1, 2),)


def test_the_host_waits_as_null() -> None:
    reply = {"observations": [{"seen": "event-waited", "event": "e", "waiter": None}]}
    assert wire.read_more(line(reply)).observations == (seen.EventWaited("e", None),)


@pytest.mark.parametrize(
    ("observation", "complaint"),
    [
        ({"seen": "backing-alocated"}, "'backing-alocated' is not one of"),
        ({"seen": "backing-freed", "address": "0x1"}, "lacks the key 'size'"),
        ({"seen": "backing-freed", "address": "0x1", "size": True}, "'size' is True"),
        ({"seen": "backing-freed", "address": "0x1", "size": 1 << 64}, "2^64"),
        ({"seen": "backing-refused", "size": 1, "kind": "host"}, "'kind' is 'host'"),
        ({"seen": "backing-refused", "size": 1, "kind": ["device"]}, "'kind' is ['device']"),
        ({"seen": "event-waited", "event": "e"}, "lacks the key 'waiter'"),
        ({"seen": "event-waited", "event": "e", "waiter": 0}, "'waiter' is 0"),
        ({"seen": "event-completed", "event": "e", "when": 1}, "unknown key 'when'"),
    ],
)
def test_a_bad_observation_is_refused(observation: dict[str, object], complaint: str) -> None:
    with pytest.raises(WireError) as error:
        wire.read_answer(
            line({"outcome": "done", "observations": [{"seen": "event-completed", "event": "e"}, observation]})
        )
    assert complaint in str(error.value)
    assert "observation 1" in str(error.value)


def test_more_without_an_observation_would_never_end() -> None:
    with pytest.raises(WireError, match="no observation"):
        wire.read_more(b'{"observations":[],"more":true}')


def test_gauges_are_exactly_those_declared() -> None:
    described = wire.read_hello(line(HELLO), "d").description
    counts = {"live": {"claim": -1}, "reserved": {"claim": 2, "ledger": (1 << 64) - 1}}
    assert wire.read_gauges(line({"gauges": counts}), described) == {
        (Gauge.LIVE, Source.CLAIM): -1,
        (Gauge.RESERVED, Source.CLAIM): 2,
        (Gauge.RESERVED, Source.LEDGER): (1 << 64) - 1,
    }


@pytest.mark.parametrize(
    ("gauges", "complaint"),
    [
        ({"live": {"claim": 0}}, "lacks the key 'reserved'"),
        ({"live": {"claim": 0}, "reserved": {"claim": 0}}, "lacks the key 'ledger'"),
        ({"live": {"claim": 0, "ledger": 0}, "reserved": {"claim": 0, "ledger": 0}}, "unknown key 'ledger'"),
        ({"live": {"claim": 0}, "reserved": {"claim": 0, "ledger": 0}, "blocks": {"claim": 0}}, "unknown key 'blocks'"),
        ({"live": {"claim": 0.5}, "reserved": {"claim": 0, "ledger": 0}}, "'claim' is 0.5"),
        ({"live": 0, "reserved": {"claim": 0, "ledger": 0}}, "gauge 'live' is 0"),
    ],
)
def test_gauges_that_were_not_declared_are_refused(gauges: dict[str, object], complaint: str) -> None:
    with pytest.raises(WireError) as error:
        wire.read_gauges(line({"gauges": gauges}), wire.read_hello(line(HELLO), "d").description)
    assert complaint in str(error.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["outcome", "address", "observations", "seen", "more", "gauges"]), inner)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.binary(max_size=64) | JSON.map(line))
def test_no_line_raises_anything_but_a_wire_error(data: bytes) -> None:
    described = wire.read_hello(line(HELLO), "d").description
    for read in (wire.read_answer, wire.read_more, read_object, lambda text: wire.read_gauges(text, described)):
        with suppress(WireError):
            read(data)


def test_the_open_request_names_every_figure_of_the_profile() -> None:
    profile = DeviceProfile(1, 2, 4, 8, 3, Flavour.HIP, Initialization.ONCE)
    assert wire.open_request(profile) == (
        "open capacity=1 pinned-capacity=2 alignment=4 granularity=8 devices=3 flavour=hip initialization=once"
    )


def test_a_request_is_the_line_of_the_case_file() -> None:
    assert wire.operation_request(Allocate("a[3]", 64, stream="s")) == "a[3] = allocate 64 on s"


@pytest.mark.parametrize(
    "operation",
    [
        Free("a\nquit"),
        Free("a on s"),
        Free("a", "s t"),
        Free(""),
        Free("a[i+1]"),
        Free("1a"),
        Allocate("a", 64, pool="p align=512"),
        Launch(reads=("a,b",)),
    ],
)
def test_a_slot_that_is_none_of_the_protocol_is_never_sent(operation: Operation) -> None:
    """It could hold a second line, or a word that means something else."""
    with pytest.raises(wire.UnsendableRequest, match="is none of the wire protocol"):
        wire.operation_request(operation)


@pytest.mark.parametrize("slot", ["a", "_", "foreign", "block[12]", "A_9[0]"])
def test_slots_of_the_protocol_are_sent(slot: str) -> None:
    assert wire.operation_request(Free(slot)) == f"free {slot}"


def test_a_line_may_fill_64_kib_and_no_more() -> None:
    def launch(blocks: int, last: str) -> Launch:
        return Launch(reads=("abcdefg",) * blocks + (last,))

    fitting = launch(8189, "x" * (65535 - len("launch reads=") - 8 * 8189))
    assert len(wire.operation_request(fitting)) == 65535
    with pytest.raises(wire.UnsendableRequest, match="65,537 bytes"):
        wire.operation_request(launch(8189, fitting.reads[-1] + "x"))
