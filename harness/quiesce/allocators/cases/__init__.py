"""Cases: programs of operations that state what they need, what they must show, and which fault they exist for."""

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
from quiesce.allocators.cases.catalogue import Catalogue, below_here, corpus_directory, find_cases, load
from quiesce.allocators.cases.expansion import CheckGauge, CheckGrowth, IterationEnd, PerformStep, Step, expand
from quiesce.allocators.cases.header import KEYS
from quiesce.allocators.cases.parser import CASE_SUFFIX, identify, parse_case, parse_text
from quiesce.allocators.cases.slots import (
    FOREIGN_SLOT,
    Making,
    SlotKind,
    check_slots,
    ends_of,
    makes_of,
    slots_made,
    slots_used,
    uses_of,
)
from quiesce.allocators.cases.wording import did_you_mean, instead_of, near_names, nearest
from quiesce.allocators.cases.writer import write_case

__all__ = [
    "CASE_SUFFIX",
    "Case",
    "CaseKind",
    "Catalogue",
    "CheckGauge",
    "CheckGrowth",
    "Comparison",
    "ExpectGauge",
    "ExpectGrowth",
    "ExpectedKind",
    "ExpectedOutcome",
    "FOREIGN_SLOT",
    "IterationEnd",
    "KEYS",
    "Known",
    "Making",
    "PerformStep",
    "Repeat",
    "Request",
    "SlotKind",
    "Statement",
    "Step",
    "below_here",
    "check_slots",
    "corpus_directory",
    "did_you_mean",
    "ends_of",
    "expand",
    "find_cases",
    "identify",
    "instead_of",
    "load",
    "makes_of",
    "near_names",
    "nearest",
    "parse_case",
    "parse_text",
    "slots_made",
    "slots_used",
    "uses_of",
    "write_case",
]
