"""Sequences that once accused a correct allocator, each reduced to what the oracle got wrong."""

from __future__ import annotations

import pytest

from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.execution import run_case
from quiesce.allocators.oracle.model import Model
from quiesce.allocators.oracle.oracle import permits
from quiesce.backends.reference import backend as reference
from quiesce.model.backend import Backend, Capability, DeviceProfile
from quiesce.model.outcomes import Allocated, OutOfMemory
from quiesce.model.requests import parse_request
from quiesce.model.results import Verdict

from .allocators.correct import CORRECT
from .strangers.correct import CORRECT as STRANGERS
from .strangers.correct import WITHHOLDING

ALLOCATORS: tuple[Backend, ...] = (*CORRECT, *STRANGERS, *WITHHOLDING)
BY_NAME = {each.describe().name: each for each in ALLOCATORS}

HEADER = """\
title: {title}
kind:  control
needs: {needs}
device: capacity=128MiB

"""
UNSEEN_EVENTS = """\
s = create stream
t = create stream
e = create event
a = allocate 1024 pinned
stall t
b = allocate 4096
copy a to b on t
free a
record event e on s
synchronize event e
trim pinned
"""
UNSEEN_ORDER = """\
s = create stream
t = create stream
launch
a = allocate 1024 on s
stall s
launch on s writes=a
b = allocate 4096 on t
free a
free b
synchronize stream t
trim
"""
STALLED_TWICE = """\
s = create stream
t = create stream
e = create event
stall t
launch on t
synchronize stream s
a = allocate 16777216
launch writes=a
free a
stall t
launch on t
b = allocate 125829120
record event e on t
query event e
"""
WAIT_ON_THE_DEFAULT_STREAM = """\
s = create stream
t = create stream
e = create event
a = allocate 1
stall t
launch on t writes=a
free a
record event e on s
wait event e
record event e on s
synchronize stream s
trim
"""
ABANDONED_CAPTURE = """\
s = create stream
a = allocate 1
launch on s writes=a
begin capture on s
free a
destroy stream s
trim
"""
STALL_BEHIND_THE_DEFAULT = """\
s = create stream
stall s
t = create stream
launch
stall t
launch on s
destroy stream t
launch
query stream
"""
STALLED_AGAIN = """\
s = create stream
a = allocate 128MiB
launch writes=a
stall s
free a
stall s
b = allocate 1
query stream
"""
FIRST_CHUNK_AT_CREATION = """\
p = create pool limit=64MiB
trim
destroy pool p
"""

REFUSED_BUT_RESERVED = """\
a = allocate 18446744073708503040 managed
trim
"""
LARGER_OF_ITS_CLASS = """\
a = allocate 1536
free a
trim
b = allocate 2048
"""
EIGHT_OF_ITS_CLASS = """\
a = allocate 9216
free a
trim
b = allocate 15360
"""
RETURNED_IN_TURN = """\
s = create stream
a = allocate 1 on s
free a
stall s
launch on s
trim
"""
RETURNED_ON_THE_DEFAULT = """\
s = create stream
t = create stream nonblocking
a = allocate 1 on t
free a
destroy stream t
stall s
e = create event
record event e on s
trim
"""
STAGED_IN_VAIN = """\
s = create stream
stall s
a = allocate 67108864 pageable
b = stage a on s
trim
"""
CACHED_FOR_ANOTHER = """\
s = create stream nonblocking
stall s
a = allocate 350208
b = allocate 700416
free b
c = allocate 1 on s align=2097152
free a
trim
"""
FREED_IN_A_DEAD_CAPTURE = """\
s = create stream
a = allocate 1 on s
t = create stream
e = create event
stall t
record event e on t
wait event e
begin capture on s
free a
destroy stream s
trim
"""
UNSEEN_WAIT = """\
s = create stream nonblocking
t = create stream
a = allocate 1 on s
launch on s writes=a
synchronize stream s
b = allocate 524288
stall t
launch on t writes=b
free b
c = allocate 524288 on s
free a
trim
"""

DOUBTFUL_IN_MANY_PLACES = """\
s = create stream
fail bookkeeper 1
a = allocate 8388608
destroy stream s
free a on s
trim
"""
RECORDED_JUST_NOW = """\
e = create event
record event e
query event e
"""
FREED_JUST_NOW = """\
s = create stream
a = allocate 1
free a on s
trim
"""
WAITED_FOR_MORE = """\
s = create stream
a = allocate 1 on s
t = create stream
e = create event
stall t
record event e on t
wait event e
destroy stream s
launch on t
query stream t
"""
KEPT_FOR_A_GRAPH = """\
s = create stream
begin capture on s
a = allocate 1 on s
g = end capture on s
free a
synchronize device
trim
"""
IN_A_SPOILED_CAPTURE = """\
s = create stream
begin capture on s
begin capture on s
a = allocate 1 on s
"""
TIDIED_UP_BEHIND_A_FREE = """\
p = create pool
a = allocate 1 pool=p
b = allocate 1MiB pool=p
free a
free b
trim
"""
TIDIED_UP_WHEN_IDLE = """\
p = create pool
s = create stream
a = allocate 1 on s pool=p
b = allocate 1MiB on s pool=p
stall s
launch on s writes=a,b
free a
free b
synchronize device
trim
"""
TIDIED_UP_IN_SPITE_OF_A_FAILURE = """\
a = allocate 1048576
b = allocate 1
free b
fail backing 1 with foreign-error
free a
c = allocate 1
"""
NO_MEMORY_FOR_A_STREAM = """\
a = allocate 134217728
s = create stream
"""
NO_INSTANCE_BEFORE_THE_RUNTIME_IS_UP = """\
x = create instance
initialize
y = create instance
"""
FREED_AT_ONCE = """\
a = allocate 1
b = allocate 1
launch writes=a
copy a to b
free a
free b
"""

STALLED_IN_A_CAPTURE = """\
s = create stream
begin capture on s
stall s
"""
CAPTURED_A_STALL = """\
s = create stream
begin capture on s
stall s
g = end capture on s
launch on s
query stream s
"""
OUT_OF_SCRATCH_FIRST = """\
a = allocate 1
free a
launch
launch
launch
launch
launch writes=a
"""

INNOCENT = (
    ("best fit, addresses never again", "an unseen event orders nothing for certain", UNSEEN_EVENTS),
    ("best fit, addresses never again", "a stream may wait for what its memory was used by", UNSEEN_WAIT),
    (
        "polled events, the backing ledger alone",
        "an unseen order completes nothing for certain",
        UNSEEN_ORDER,
    ),
    ("powers of two", "a wait on the default stream may be no action", WAIT_ON_THE_DEFAULT_STREAM),
    ("huge pages", "a second stall may be the first one", STALLED_TWICE),
    ("buddies", "a request that is refused may leave a chunk behind", REFUSED_BUT_RESERVED),
    ("returns in the order of the queue", "memory may go back in the order of its stream", RETURNED_IN_TURN),
    ("returns in the order of the queue", "where its stream is gone, in the default one's", RETURNED_ON_THE_DEFAULT),
    (
        "returns in the order of the queue",
        "what a failed request had goes back in the order of its stream",
        STAGED_IN_VAIN,
    ),
    ("settled checkpoints", "what is cached may be kept for a stream that waited for it", CACHED_FOR_ANOTHER),
    ("deferred batches", "a free may outlive the capture that it was in", FREED_IN_A_DEAD_CAPTURE),
    ("guard pages", "a larger request of a class may need a larger chunk", LARGER_OF_ITS_CLASS),
    ("decaying runs", "a chunk may be so many times its request", EIGHT_OF_ITS_CLASS),
    ("reserves at once", "a pool may take memory when it is made", FIRST_CHUNK_AT_CREATION),
    ("coalescing spans", "a pool may take one chunk for several behind a free", TIDIED_UP_BEHIND_A_FREE),
    ("coalescing spans", "a pool may take one chunk for several when it is idle", TIDIED_UP_WHEN_IDLE),
    ("coalescing spans, nothing told", "what tidies up may meet a failure unseen", TIDIED_UP_IN_SPITE_OF_A_FAILURE),
    ("coalescing spans, and stacks", "a stream may need memory that is not there", NO_MEMORY_FOR_A_STREAM),
    ("reference, initialised first", "a runtime may have to be up first", NO_INSTANCE_BEFORE_THE_RUNTIME_IS_UP),
    ("records its work", "a record may come behind the work of its own call", FREED_AT_ONCE),
    ("waits for its work", "a wait may come behind the work of its own call", FREED_AT_ONCE),
    ("mapped segments", "all of a block may exist whose free failed", DOUBTFUL_IN_MANY_PLACES),
    ("mapped segments", "a library that waits for a stream may wait for more", WAITED_FOR_MORE),
    ("memory of graphs", "a graph writes to what was freed as long as it exists", KEPT_FOR_A_GRAPH),
    ("memory of graphs", "a capture that went bad refuses everything", IN_A_SPOILED_CAPTURE),
    ("late arenas", "a device comes to a record in its own time", RECORDED_JUST_NOW),
    ("captures refuse stalls", "a stall may be work that a capture refuses", STALLED_IN_A_CAPTURE),
    ("captures take stalls", "a stall may be work that a capture takes in", CAPTURED_A_STALL),
    ("reference, short of scratch", "what a launch lacks may be seen before what it names", OUT_OF_SCRATCH_FIRST),
    ("late arenas, untold", "a device comes to an unseen record in its own time", FREED_JUST_NOW),
    ("late arenas", "a device comes to a library's record in its own time", FREED_JUST_NOW),
)


@pytest.mark.parametrize(("name", "title", "body"), INNOCENT, ids=[title for _, title, _ in INNOCENT])
def test_a_correct_allocator_is_not_accused(name: str, title: str, body: str) -> None:
    result = run_case(parse_text(HEADER.format(title=title, needs="memory") + body, "x.case", "x"), BY_NAME[name])
    assert result.findings == ()
    assert result.verdict is Verdict.PASSED


REFERENCE = (
    ("a capture may be abandoned", "", ABANDONED_CAPTURE),
    ("a stall of its own waits for what the default stream waits for", " flavour=hip", STALL_BEHIND_THE_DEFAULT),
    ("a second stall may outlive the first", "", STALLED_AGAIN),
)


@pytest.mark.parametrize(("title", "device", "body"), REFERENCE, ids=[title for title, _, _ in REFERENCE])
def test_the_reference_is_not_accused(title: str, device: str, body: str) -> None:
    text = HEADER.format(title=title, needs="memory, capture").replace("128MiB", f"128MiB{device}") + body
    assert Capability.ORDER_LEDGER in reference().describe().capabilities
    result = run_case(parse_text(text, "x.case", "x"), reference())
    assert result.findings == ()
    assert result.verdict is Verdict.PASSED


@pytest.mark.parametrize("request_line", ["a = allocate 1 pool=gone", "a = stage gone"])
def test_what_names_nothing_may_run_out_of_memory_first(request_line: str) -> None:
    permitted = permits(Model(reference().describe(), DeviceProfile()), parse_request(request_line))
    assert permitted.permits(OutOfMemory())
    assert not permitted.permits(Allocated(1 << 20))
