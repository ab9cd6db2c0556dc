"""Cases: programs of operations that state what they need, what they must show, and which fault they exist for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiesce.doors import lazy_names

if TYPE_CHECKING:
    from quiesce.allocators.cases.case import Case as Case
    from quiesce.allocators.cases.case import CaseKind as CaseKind
    from quiesce.allocators.cases.case import Comparison as Comparison
    from quiesce.allocators.cases.case import ExpectedKind as ExpectedKind
    from quiesce.allocators.cases.case import ExpectedOutcome as ExpectedOutcome
    from quiesce.allocators.cases.case import ExpectGauge as ExpectGauge
    from quiesce.allocators.cases.case import ExpectGrowth as ExpectGrowth
    from quiesce.allocators.cases.case import Known as Known
    from quiesce.allocators.cases.case import Repeat as Repeat
    from quiesce.allocators.cases.case import Request as Request
    from quiesce.allocators.cases.case import Statement as Statement
    from quiesce.allocators.cases.catalogue import Catalogue as Catalogue
    from quiesce.allocators.cases.catalogue import below_here as below_here
    from quiesce.allocators.cases.catalogue import corpus_directory as corpus_directory
    from quiesce.allocators.cases.catalogue import find_cases as find_cases
    from quiesce.allocators.cases.catalogue import load as load
    from quiesce.allocators.cases.expansion import CheckGauge as CheckGauge
    from quiesce.allocators.cases.expansion import CheckGrowth as CheckGrowth
    from quiesce.allocators.cases.expansion import IterationEnd as IterationEnd
    from quiesce.allocators.cases.expansion import PerformStep as PerformStep
    from quiesce.allocators.cases.expansion import Step as Step
    from quiesce.allocators.cases.expansion import expand as expand
    from quiesce.allocators.cases.header import KEYS as KEYS
    from quiesce.allocators.cases.lint import lint_cases as lint_cases
    from quiesce.allocators.cases.lint import notes as notes
    from quiesce.allocators.cases.parser import CASE_SUFFIX as CASE_SUFFIX
    from quiesce.allocators.cases.parser import identify as identify
    from quiesce.allocators.cases.parser import parse_case as parse_case
    from quiesce.allocators.cases.parser import parse_text as parse_text
    from quiesce.allocators.cases.slots import FOREIGN_SLOT as FOREIGN_SLOT
    from quiesce.allocators.cases.slots import Making as Making
    from quiesce.allocators.cases.slots import SlotKind as SlotKind
    from quiesce.allocators.cases.slots import check_slots as check_slots
    from quiesce.allocators.cases.slots import ends_of as ends_of
    from quiesce.allocators.cases.slots import makes_of as makes_of
    from quiesce.allocators.cases.slots import slots_made as slots_made
    from quiesce.allocators.cases.slots import slots_used as slots_used
    from quiesce.allocators.cases.slots import uses_of as uses_of
    from quiesce.allocators.cases.wording import did_you_mean as did_you_mean
    from quiesce.allocators.cases.wording import instead_of as instead_of
    from quiesce.allocators.cases.wording import near_names as near_names
    from quiesce.allocators.cases.wording import nearest as nearest
    from quiesce.allocators.cases.writer import write_case as write_case
else:  # type checkers refuse a name that is not above
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "case": (
                "Case CaseKind Comparison ExpectGauge ExpectGrowth ExpectedKind ExpectedOutcome Known "
                "Repeat Request Statement"
            ),
            "catalogue": "Catalogue below_here corpus_directory find_cases load",
            "expansion": "CheckGauge CheckGrowth IterationEnd PerformStep Step expand",
            "header": "KEYS",
            "lint": "lint_cases notes",
            "parser": "CASE_SUFFIX identify parse_case parse_text",
            "slots": ("FOREIGN_SLOT Making SlotKind check_slots ends_of makes_of slots_made slots_used uses_of"),
            "wording": "did_you_mean instead_of near_names nearest",
            "writer": "write_case",
        },
    )
