from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiesce.allocators.cases.case import (
    Case,
    CaseKind,
    Comparison,
    ExpectedKind,
    ExpectedOutcome,
    ExpectGauge,
    ExpectGrowth,
    Known,
    Repeat,
    Request,
    Statement,
)
from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.cases.writer import format_size, write_case
from quiesce.model.backend import Capability, DeviceProfile, Flavour, Initialization, Promise
from quiesce.model.gauges import Gauge

CANONICAL = """\
# A comment above.
title:    A pool gives its cached blocks back before it reports out of memory
upstream: NVIDIA/cccl#4222, fixed by #4420, first release 3.1.0
upstream: tracel-ai/cubecl#1438
fault:    pool.no_squeeze
finds:    request_fits_but_out_of_memory
needs:    capacity, pool
# A comment inside.
promise:  reclaims-before-oom
device:   capacity=128MiB devices=2 flavour=hip
known:    cccl >=3.1.0 NVIDIA/cccl#4222

# The body.
a = allocate 64MiB -> allocated
mark m
free a

repeat 20:
    # Inside a block.
    b[i] = allocate 1KiB*i  # the size rises
    repeat 2 as j:

        c = allocate 96MiB -> rejected invalid-value
    free b[i]
expect retained grows 0 per iteration after 10
expect reserved grows 1KiB per iteration after 2
expect live == mark m - 64MiB
expect live == mark m
expect live <= mark m + 1
expect reserved == 0  # at the end

# The last line.
"""


def _parsed(text: str) -> Case:
    return parse_text(text, "topic/x.case", "topic/x")


def test_the_canonical_form_is_written_as_it_was_read() -> None:
    assert write_case(_parsed(CANONICAL)) == CANONICAL


@pytest.mark.parametrize(
    "text",
    [
        "\n\ntitle:T\nkind :  control\n\n\n\ntrim\n\n\n",
        "title: T\ndevice: devices=1\nkind: control\n# c\n\ntrim\n",
        "title: T\nkind: control\n# c\n# d\n\n# e\ntrim # f",
        "kind: control\n## c\ntitle: T\ndevice: devices=1\n\n# d\ntrim\nmark m\nexpect live == mark m + 0\n",
        "needs: pool, memory\ndevice: alignment=512B\ntitle: T # 1\nkind: control\n\nrepeat 2 as i:\n    trim#x\n #y",
        "title: T\nkind: regression\nfault: a.b\nfinds: c\n\ntrim\n",
    ],
)
def test_other_forms_keep_their_meaning_and_line_numbers(text: str) -> None:
    case = _parsed(text)
    written = write_case(case)
    assert _parsed(written) == case
    assert write_case(_parsed(written)) == written


def test_statements_without_lines_of_their_own_take_the_next_free_ones() -> None:
    body = (Request("a = allocate 1024", None, 0), Repeat(2, "i", (Request("trim", None, 0),), 0))
    case = replace(_parsed("title: T\nkind: control\n\ntrim\n"), body=body, comments=((9, "kept"),))
    written = write_case(case)
    assert written == "title:    T\nkind:     control\n\na = allocate 1024\nrepeat 2:\n    trim\n\n\n# kept\n"
    assert _parsed(written).comments == case.comments


def test_comments_of_removed_lines_are_kept() -> None:
    case = _parsed("title: T\nkind: control\n\na = allocate 1  # first\nfree a  # second\n")
    written = write_case(replace(case, body=case.body[:1]))
    assert written.splitlines()[3:] == ["a = allocate 1  # first", "# second"]


def test_control_characters_never_make_a_second_line() -> None:
    case = _parsed("title: T\nkind: control\n\ntrim\n")
    written = write_case(replace(case, title="one\ntrim\x1b", comments=((4, "two\nfree"),)))
    assert _parsed(written).title == "one trim"
    assert _parsed(written).comments == ((4, "two free"),)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0"), (1, "1B"), (1024, "1KiB"), (1536, "1536B"), (3 << 20, "3MiB"), (1 << 40, "1TiB"), (5 << 41, "10TiB")],
)
def test_sizes_take_the_largest_unit_that_fits(size_bytes: int, text: str) -> None:
    assert format_size(size_bytes) == text


_NAMES = st.from_regex(r"\A[a-z][a-z0-9_]{0,8}\Z")
_PROSE = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cf", "Zs"]), min_size=1, max_size=20)
_OUTCOMES = st.sampled_from(
    [
        None,
        ExpectedOutcome(ExpectedKind.ALLOCATED),
        ExpectedOutcome(ExpectedKind.OUT_OF_MEMORY),
        ExpectedOutcome(ExpectedKind.REJECTED),
        ExpectedOutcome(ExpectedKind.REJECTED, "invalid-value"),
    ]
)
_HEADERS = st.fixed_dictionaries(
    {
        "title": _PROSE,
        "upstream": st.lists(_PROSE, max_size=2).map(tuple),
        "needs": st.frozensets(st.sampled_from(Capability)),
        "promises": st.frozensets(st.sampled_from(Promise)),
        "device": st.builds(
            DeviceProfile,
            capacity_bytes=st.integers(1, 1 << 50),
            alignment_bytes=st.sampled_from([1, 256, 4096]),
            devices=st.integers(1, 64),
            flavour=st.sampled_from(Flavour),
            initialization=st.sampled_from(Initialization),
        ),
        "known": st.lists(st.builds(Known, _NAMES, st.just(">=1.2,<3"), st.just("a/b#1")), max_size=2).map(tuple),
    }
)


class _Layout:
    """Draws statements line by line, so that every slot is made once and every line number rises."""

    def __init__(self, data: st.DataObject) -> None:
        self._draw = data.draw
        self._line = 20
        self._slots = 0
        self.comments: list[tuple[int, str]] = []

    def _next_line(self, *, may_trail: bool = True) -> int:
        self._line += 1
        for _ in range(self._draw(st.integers(0, 2))):
            if self._draw(st.booleans()):
                self.comments.append((self._line, self._draw(_PROSE | st.just(""))))
            self._line += 1
        if may_trail and self._draw(st.booleans()):
            self.comments.append((self._line, self._draw(_PROSE)))
        return self._line

    def block(self, depth: int, variables: tuple[str, ...]) -> tuple[Statement, ...]:
        statements: list[Statement] = [self._allocation(variables)]
        for _ in range(self._draw(st.integers(0, 3))):
            if depth < 2 and self._draw(st.booleans()):
                statements += self._loop(depth, variables)
            else:
                statements.append(self._draw(st.sampled_from([self._allocation, self._gauge]))(variables))
        return tuple(statements)

    def _index(self, variables: tuple[str, ...]) -> str:
        return "[" + "+".join(f"{10**place}*{name}" for place, name in enumerate(variables)) + "]" if variables else ""

    def _allocation(self, variables: tuple[str, ...]) -> Statement:
        self._slots += 1
        size = "+".join(["64MiB", *(f"4KiB*{name}" for name in variables)])
        template = f"s{self._slots}{self._index(variables)} = allocate {size}"
        return Request(template, self._draw(_OUTCOMES), self._next_line())

    def _gauge(self, variables: tuple[str, ...]) -> Statement:
        comparison = self._draw(st.sampled_from(Comparison))
        value = self._draw(st.sampled_from(["0", "3MiB+1", *(f"2*{name}" for name in variables)]))
        return ExpectGauge(
            self._draw(st.sampled_from([Gauge.LIVE, Gauge.PINNED])), comparison, value, None, self._next_line()
        )

    def _loop(self, depth: int, variables: tuple[str, ...]) -> list[Statement]:
        line = self._next_line()
        variable = "i" if not variables else f"v{depth}"
        loop = Repeat(self._draw(st.integers(3, 9)), variable, self.block(depth + 1, (*variables, variable)), line)
        gauges = self._draw(st.lists(st.sampled_from(Gauge), max_size=2))
        return [
            loop,
            *(ExpectGrowth(gauge, self._draw(st.integers(0, 1 << 30)), 0, self._next_line()) for gauge in gauges),
        ]


@pytest.mark.long
@settings(deadline=None)
@given(header=_HEADERS, leading=st.sets(st.integers(1, 8)), control=st.booleans(), data=st.data())
def test_generated_cases_survive_writing_and_parsing(
    header: dict[str, object], leading: set[int], control: bool, data: st.DataObject
) -> None:
    layout = _Layout(data)
    body = layout.block(0, ())
    first = [(line, data.draw(_PROSE)) for line in sorted(leading)]
    case = Case(
        identifier="topic/x",
        path="topic/x.case",
        kind=CaseKind.CONTROL if control else CaseKind.REGRESSION,
        fault="" if control else "pool.no_squeeze",
        finds="" if control else "nothing_left",
        body=body,
        comments=(*first, *layout.comments),
        **header,  # type: ignore[arg-type]
    )
    written = write_case(case)
    assert _parsed(written) == case
    assert write_case(_parsed(written)) == written
