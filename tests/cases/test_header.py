from __future__ import annotations

from collections.abc import Callable

import pytest

from quiesce.allocators.cases.case import Case, CaseKind, Known
from quiesce.allocators.cases.parser import parse_text
from quiesce.model.backend import Capability, DeviceProfile, Flavour, Initialization, Promise
from quiesce.model.errors import CaseError

FULL = """\
title:    A pool gives its cached blocks back before it reports out of memory
upstream: NVIDIA/cccl#4222, fixed by #4420, first release 3.1.0
upstream: tracel-ai/cubecl#1438
fault:    pool.no_squeeze
finds:    request_fits_but_out_of_memory
needs:    pool, capacity
promise:  reclaims-before-oom
device:   capacity=128MiB pinned-capacity=64MiB alignment=512 granularity=2MiB devices=2 flavour=hip initialize=once
known:    cccl >=3.1.0 NVIDIA/cccl#4222
known:    cupy >=12,<13.2 cupy/cupy#7678
"""


def _parsed(header: str) -> Case:
    return parse_text(f"{header}\na = allocate 1MiB\n", "topic/x.case", "topic/x")


def test_every_key_is_read() -> None:
    case = _parsed(FULL)
    assert case.title == "A pool gives its cached blocks back before it reports out of memory"
    assert case.kind is CaseKind.REGRESSION
    assert case.upstream == ("NVIDIA/cccl#4222, fixed by #4420, first release 3.1.0", "tracel-ai/cubecl#1438")
    assert (case.fault, case.finds) == ("pool.no_squeeze", "request_fits_but_out_of_memory")
    assert case.needs == {Capability.POOL, Capability.CAPACITY}
    assert case.promises == {Promise.RECLAIMS_BEFORE_OOM}
    assert case.device == DeviceProfile(
        capacity_bytes=128 << 20,
        pinned_capacity_bytes=64 << 20,
        alignment_bytes=512,
        granularity_bytes=2 << 20,
        devices=2,
        flavour=Flavour.HIP,
        initialization=Initialization.ONCE,
    )
    assert case.known == (
        Known("cccl", ">=3.1.0", "NVIDIA/cccl#4222"),
        Known("cupy", ">=12,<13.2", "cupy/cupy#7678"),
    )


def test_a_control_needs_a_title_only() -> None:
    case = _parsed("title: Blocks come and go\nkind: control\n")
    assert case.kind is CaseKind.CONTROL
    assert (case.fault, case.finds, case.upstream, case.known) == ("", "", (), ())
    assert not case.needs
    assert not case.promises
    assert case.device == DeviceProfile()


REGRESSION = "title: T\nfault: pool.x\nfinds: leak\n"


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("kind: control", ":1: the case has no title; write 'title: …'"),
        ("title: T\ntilte: U", ":2: unknown header key 'tilte'; write 'title', or another of"),
        ("title: T\ntitle: U", ":2: 'title:' appears twice, first in line 1"),
        ("title: T\nneeds:", ":2: 'needs:' says nothing"),
        ("title: T\njust words", ":2: 'just words' is no header line; write 'key: value', or a blank line"),
        ("title: T\nfault: pool.x", ":2: a 'fault:' without 'finds:' proves nothing; write 'finds: RULE'"),
        ("title: T\nkind: found", ":2: a found case without 'finds:' proves nothing; write 'finds: RULE'"),
        ("title: T\nkind: control\nfault: pool.x", ":3: a control passes with every fault"),
        ("title: T\nkind: control\nfinds: leak", ":3: a control passes with every fault"),
        ("title: T\nkind: regresion", ":2: unknown word 'regresion' in 'kind:'; write 'regression'"),
        ("title: T\nfault: Pool!\nfinds: leak", ":2: 'Pool!' is not a name for 'fault:'"),
        ("title: T\nfault: pool.x\nfinds: two words", ":3: 'two words' is not a name for 'finds:'"),
        (REGRESSION + "needs: pol", ":4: unknown word 'pol' in 'needs:'; write 'pool'"),
        (REGRESSION + "needs: pool,", ":4: unknown word '' in 'needs:'"),
        (REGRESSION + "needs: pool, pool", ":4: 'pool' appears twice in 'needs:'"),
        (REGRESSION + "promise: flat-costs", ":4: unknown word 'flat-costs' in 'promise:'; write 'flat-cost'"),
        (REGRESSION + "device: capcity=1GiB", ":4: unknown word 'capcity' in 'device:'; write 'capacity'"),
        (REGRESSION + "device: capacity", ":4: 'capacity' has no value; write capacity=…"),
        (REGRESSION + "device: capacity=1GB", ":4: capacity=1GB: unknown unit 'GB'"),
        (REGRESSION + "device: capacity=0", ":4: capacity=0 leaves no device to test"),
        (REGRESSION + "device: alignment=3", ":4: alignment=3 is not a power of two"),
        (REGRESSION + "device: devices=1000000", ":4: devices=1000000 is beyond what a case may open"),
        (REGRESSION + "device: devices=1 devices=2", ":4: 'devices' appears twice in 'device:'"),
        (REGRESSION + "device: flavour=rocm", ":4: unknown word 'rocm' in 'device:'; write one of cuda, hip"),
        (REGRESSION + "known: cccl all", ":4: 'known:' takes three words and 'cccl all' has 2"),
        (REGRESSION + "known: cccl 3.x NVIDIA/cccl#1", ":4: 'known:': '3.x' names no versions; write >=3.1.0,<3.2 or"),
        (REGRESSION + "known: cccl >=3.1, NVIDIA/cccl#1", ":4: 'known:': '' names no versions"),
        (REGRESSION + "known: cccl 3.2..3.1 NVIDIA/cccl#1", ":4: 'known:': '3.2..3.1' ends before it begins"),
        (REGRESSION + "known: cccl >=3.1 4222", ":4: '4222' is not an upstream number"),
    ],
)
def test_errors_name_line_fault_and_remedy(header_error: Callable[[str], CaseError], header: str, text: str) -> None:
    assert str(header_error(header)).startswith(f"topic/x.case{text}")


def test_a_case_without_a_body_is_an_error() -> None:
    with pytest.raises(CaseError, match=r"topic/x\.case:2: the case requests nothing"):
        parse_text("title: T\nkind: control\n\n# nothing\n", "topic/x.case")


def test_an_empty_text_has_no_title() -> None:
    with pytest.raises(CaseError, match=r"topic/x\.case:1: the case has no title"):
        parse_text("", "topic/x.case")
