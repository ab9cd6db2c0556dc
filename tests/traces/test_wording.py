"""Each record as a sentence."""

from __future__ import annotations

from typing import Any, Final

import pytest

from quiesce.simulator.judge.wording import Place, Sentences, addresses_of
from quiesce.simulator.runtime.ledger import OF_KERNELS, Flag, Seen, Thing

from .records import record

PLACES: Final = {0x1000: Place(3, 0), 0x1008: Place(3, 8), 0x2000: Place(5, 1234)}


def said(seen: Seen, **fields: Any) -> str:
    made = record(seen, **{"number": 7, **fields})
    places = {(7, address): place for address, place in PLACES.items()}
    return Sentences(places, "host memory").of(made)


HERE: Final = {"address": 0x1008, "size_bytes": 64}


@pytest.mark.parametrize(
    ("seen", "fields", "sentence"),
    [
        (
            Seen.ALLOCATED,
            {"thing": Thing.DEVICE, "size_bytes": 2048, "device": 1},
            "allocates block 7: 2,048 bytes (2 KiB) of device memory on device 1",
        ),
        (
            Seen.ALLOCATED,
            {"thing": Thing.MANAGED, "size_bytes": 1, "flags": Flag.ORDERED, "stream": 2},
            "allocates block 7: 1 byte of managed memory on device 0, in the order of stream 2",
        ),
        (
            Seen.ALLOCATED,
            {"thing": Thing.PINNED, "size_bytes": 64},
            "allocates block 7: 64 bytes of pinned host memory",
        ),
        (
            Seen.ALLOCATED,
            {"thing": Thing.REGISTERED, "size_bytes": 64},
            "allocates block 7: 64 bytes of host memory, registered",
        ),
        (Seen.FREED, {"address": 0x1000}, "frees block 3"),
        (
            Seen.FREED,
            {"address": 0x1000, "flags": Flag.ORDERED, "device": 1},
            "frees block 3, in the order of the default stream of device 1",
        ),
        (Seen.FREED, {"address": 0x9000}, "frees a block"),
        (Seen.REFUSED, {"thing": Thing.PINNED, "size_bytes": 64}, "is refused 64 bytes of pinned host memory"),
        (Seen.READ, {**HERE, "stream": 2}, "stream 2 reads 64 bytes of block 3 from byte 8 on"),
        (Seen.WRITTEN, HERE, "the default stream writes 64 bytes of block 3 from byte 8 on"),
        (Seen.WRITTEN, {**HERE, "address": 0x9000}, "the default stream writes 64 bytes of host memory"),
        (
            Seen.COPIED,
            {**HERE, "other": 0x2000},
            "the default stream copies 64 bytes from block 5 from byte 1,234 on to block 3 from byte 8 on",
        ),
        (
            Seen.COPIED,
            {**HERE, "other": 0x9000},
            "the default stream copies 64 bytes from host memory to block 3 from byte 8 on",
        ),
        (Seen.LAUNCHED, {"stream": 4}, "stream 4 runs a kernel"),
        (Seen.FREED_TWICE, {"address": 0x1000}, "frees block 3 again"),
        (Seen.FREED_TWICE, {"address": 0x9000}, "frees a block again"),
        (Seen.FREED_FOREIGN, {}, "frees an address where no block of its kind begins"),
        (Seen.USED_AFTER_FREE, HERE, "uses 64 bytes of block 3 from byte 8 on after the free"),
        (Seen.OUT_OF_BOUNDS, HERE, "uses 64 bytes of block 3 from byte 8 on, beyond its end"),
        (Seen.DAMAGED, {"address": 0x1000}, "detects changed bytes after block 3"),
        (
            Seen.STAGED_AGAIN,
            {**HERE, "other": 0x2000},
            "copies 64 bytes of block 5 from byte 1,234 on through block 3 from byte 8 on",
        ),
        (Seen.DEAD_HANDLE, {"thing": Thing.STREAM}, "uses a stream that was destroyed"),
        (Seen.DEAD_HANDLE, {"thing": Thing.EVENT}, "uses an event that was destroyed"),
        (Seen.DEAD_HANDLE, {"thing": Thing.FFT_PLAN}, "uses an FFT plan that was destroyed"),
        (Seen.DEAD_HANDLE, {"thing": Thing.USER_OBJECT}, "uses a user object that was destroyed"),
        (Seen.NOT_SIMULATED, {}, "is not simulated"),
        (Seen.CONTEXT_BROKEN, {"device": 2, "other": 700}, "device 2 becomes unusable by error 700"),
        (Seen.RECORDED, {"object": 4, "stream": 2}, "event 4 is recorded on stream 2"),
        (
            Seen.RECORDED,
            {"object": 4, "flags": Flag.CAPTURED},
            "event 4 is recorded on the default stream, within a graph",
        ),
        (Seen.STREAM_WAITED, {"object": 4, "stream": 2}, "stream 2 waits for event 4"),
        (
            Seen.STREAM_WAITED,
            {"object": 4, "stream": 2, "flags": Flag.CAPTURED},
            "stream 2 waits for event 4, within a graph",
        ),
        (Seen.STREAM_WAITED_VALUE, {"address": 0x1000, "stream": 2}, "stream 2 waits for a value at 0x1000"),
        (Seen.EVENT_WAITED, {"object": 4}, "the host waits for event 4"),
        (Seen.EVENT_COMPLETE, {"object": 4}, "the host learns that event 4 is complete"),
        (Seen.STREAM_COMPLETE, {"stream": 2}, "the host learns that the work of stream 2 is complete"),
        (Seen.HOST_WAITED_WORK, {"stream": 2}, "the host learns that the work of stream 2 is complete"),
        (Seen.STREAM_WAITED_FOR, {"stream": 2}, "the host waits for stream 2"),
        (Seen.DEVICE_WAITED_FOR, {"device": 1}, "the host waits for device 1"),
        (Seen.CREATED, {"thing": Thing.GRAPH_EXEC, "object": 9}, "creates executable graph 9"),
        (Seen.DESTROYED, {"thing": Thing.STREAM, "object": 9}, "destroys stream 9"),
        (
            Seen.MARK,
            {"address": 1200, "size_bytes": 64, "other": 3},
            "the program's mark: 1,200 live blocks, 64 bytes, 3 handles",
        ),
        (Seen.HOST_READ, {"address": 0x1000}, "the host reads block 3"),
        (Seen.HOST_WROTE, {"address": 0x1000}, "the host writes block 3"),
        (Seen.BRANCH_BEGAN, {"stream": 9}, "stream 9 begins, a branch of a graph"),
        (Seen.NODE_RAN, {}, "a node of a graph runs"),
        (Seen.HOST_UNSEEN, {}, "from here on the program handles SIGSEGV itself"),
        (Seen.EXPORTED, {"address": 0x1000}, "lets other processes open block 3"),
        (Seen.FREED_WHILE_OPEN, {"address": 0x1000}, "frees block 3, which another process has open"),
        (Seen.IMPORTED, {"address": 4, "object": 9}, "opens event 4 of another process as event 9"),
        (Seen.EXPORTER_FREED, {"address": 0x1000}, "another process has freed its block 3"),
        (Seen.TICK, {"object": 1234}, "begins as call 1,234 of the processes that share memory"),
        (Seen.NOTHING, {}, ""),
    ],
)
def test_a_sentence(seen: Seen, fields: dict[str, Any], sentence: str) -> None:
    assert said(seen, **fields) == sentence


def test_each_record_has_one_but_those_of_kernels() -> None:
    silent = {seen for seen in Seen if not said(seen, thing=Thing.STREAM)}
    assert silent == {Seen.NOTHING, *OF_KERNELS}


@pytest.mark.parametrize(
    ("seen", "addresses"),
    [(Seen.COPIED, (1, 2)), (Seen.STAGED_AGAIN, (1, 2)), (Seen.WRITTEN, (1,)), (Seen.FREED, (1,))],
)
def test_which_addresses_a_sentence_names(seen: Seen, addresses: tuple[int, ...]) -> None:
    assert addresses_of(record(seen, address=1, other=2)) == addresses
    assert addresses_of(record(Seen.WRITTEN, other=2)) == ()
    assert addresses_of(record(Seen.COPIED, other=2)) == (0, 2)
