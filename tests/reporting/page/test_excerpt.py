from __future__ import annotations

from quiesce.model.findings import Finding
from quiesce.model.results import Sample
from quiesce.reporting.page.excerpt import AFTER, BEFORE, HEAD, Gap, OperationLine, make_excerpt, shorten


def sample(index: int) -> Sample:
    return Sample(index, f"a[{index}] = allocate 1024", "allocated at 0x40", 7, 1024 * (index + 1), None, None)


def found_at(index: int | None) -> Finding:
    return Finding("rule", "this", "that", operation_index=index, line=9, request="free a")


def test_a_short_sequence_is_shown_whole() -> None:
    excerpt = make_excerpt([sample(0), sample(1)], [found_at(1)], 2)
    assert excerpt.columns == ("live",)
    assert excerpt.lines == (
        OperationLine(0, 7, "a[0] = allocate 1024", "allocated at 0x40", ("1 KiB",), False),
        OperationLine(1, 7, "a[1] = allocate 1024", "allocated at 0x40", ("2 KiB",), True),
    )
    assert not excerpt.at_closing


def test_of_a_long_sequence_the_beginning_and_the_surroundings_are_shown() -> None:
    excerpt = make_excerpt([sample(index) for index in range(1000)], [found_at(500)], 1000)
    first_gap, last_gap = (line for line in excerpt.lines if isinstance(line, Gap))
    assert first_gap == Gap(500 - BEFORE - HEAD)
    assert last_gap == Gap(1000 - 500 - AFTER - 1)
    assert len(excerpt.lines) == HEAD + BEFORE + 1 + AFTER + 2


def test_what_is_found_at_closing_stands_behind_the_last_operations() -> None:
    excerpt = make_excerpt([sample(index) for index in range(100)], [found_at(None)], 100)
    last = excerpt.lines[-1]
    assert isinstance(last, OperationLine)
    assert (last.index, last.is_offending, excerpt.at_closing) == (99, False, True)


def test_an_operation_that_nobody_sampled_is_shown_by_its_finding() -> None:
    excerpt = make_excerpt([sample(0)], [found_at(3)], 4)
    assert excerpt.lines[1:] == (Gap(2), OperationLine(3, 9, "free a", "", ("",), True))


def test_an_answer_of_a_megabyte_is_shortened() -> None:
    assert shorten("x" * 2**20) == "x" * 300 + "…"
