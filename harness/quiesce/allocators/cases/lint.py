"""Lint: what a corpus asks of its cases beyond the grammar, so that they read alike and stay small."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from quiesce.allocators.cases.case import Case, Repeat, Statement
from quiesce.allocators.cases.wording import instead_of
from quiesce.model.errors import CaseError

TITLE_CHARACTERS_MAX: Final = 70
BODY_LINES_MAX: Final = 60
"""The most lines of requests, expectations and repeats in one case."""

_BUGS: Final = (
    "for a bug of your own, write 'finds: RULE', which it breaks ('quiesce list rules'); for a bug of the museum, "
    "'fault: NAME' as well ('quiesce list faults'); for legal behaviour, 'kind: control'"
)
"""What to write for each kind of case."""
_MODAL = re.compile(r"\b(should|shouldn't|must|mustn't|test that|tests that)\b", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*/[a-z][a-z0-9]*(?:_[a-z0-9]+)*\Z")
_NUMBER = re.compile(r"#[0-9]+")


def lint_cases(cases: Sequence[Case], *, rules: Collection[str], faults: Collection[str]) -> tuple[CaseError, ...]:
    """Return what is wrong with ``cases``, in their order.

    ``rules`` are the names that a case can find, ``faults`` those that the museum holds. An error about the
    header names line 1.
    """
    errors: list[CaseError] = []
    titles: dict[str, Case] = {}
    for case in cases:
        errors += _title_errors(case)
        first = titles.setdefault(case.title.casefold(), case)
        if first is not case:
            errors.append(_error(case, f"the title is that of {first.path}", "say what differs between the two"))
        if not _IDENTIFIER.match(case.identifier):
            errors.append(
                _error(
                    case,
                    f"'{case.identifier}' is not <topic>/<behaviour>",
                    "name folder and file in snake_case: cases/<topic>/<behaviour>.case",
                )
            )
        errors += _regression_errors(case, rules, faults)
        errors += _length_errors(case)
    return tuple(errors)


def notes(cases: Sequence[Case]) -> tuple[CaseError, ...]:
    """Return what is not wrong and better said: which bug a case is about that names neither a fault nor a rule."""
    return tuple(
        _error(case, "the case does not say which bug it is about", _BUGS) for case in cases if _is_silent(case)
    )


def _is_silent(case: Case) -> bool:
    return case.is_own and not case.finds


def _error(case: Case, what: str, instead: str, line: int = 1) -> CaseError:
    return CaseError(case.path, line, what, instead)


def _title_errors(case: Case) -> Iterator[CaseError]:
    if len(case.title) > TITLE_CHARACTERS_MAX:
        yield _error(case, f"the title has {len(case.title)} characters", f"say it in at most {TITLE_CHARACTERS_MAX}")
    if match := _MODAL.search(case.title):
        yield _error(case, f"the title says '{match[0]}'", "say what happens: 'A pool gives … back'")
    if case.title.endswith("."):
        yield _error(case, "the title ends in a full stop", "leave it out")


def _regression_errors(case: Case, rules: Collection[str], faults: Collection[str]) -> Iterator[CaseError]:
    if case.finds and case.finds not in rules:
        yield _error(case, f"'finds: {case.finds}' is no rule", instead_of(case.finds, sorted(rules)))
    if not case.fault:
        return
    if case.fault not in faults:
        yield _error(case, f"'fault: {case.fault}' is not in the museum", instead_of(case.fault, sorted(faults)))
    if not any(_NUMBER.search(upstream) for upstream in case.upstream):
        yield _error(case, "no upstream number says where the bug was", "write 'upstream: OWNER/REPOSITORY#NUMBER'")


def _length_errors(case: Case) -> Iterator[CaseError]:
    lines = list(_lines(case.body))
    if len(lines) > BODY_LINES_MAX:
        yield _error(
            case,
            f"the body has {len(lines)} lines",
            f"keep the {BODY_LINES_MAX} that show the behaviour, or split the case",
            lines[BODY_LINES_MAX],
        )


def _lines(body: Sequence[Statement]) -> Iterator[int]:
    for statement in body:
        yield statement.line
        if isinstance(statement, Repeat):
            yield from _lines(statement.body)
