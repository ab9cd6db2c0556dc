"""What verdicts and rules mean, one sentence each, and upstream's issues in which programs broke those rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from quiesce.allocators.oracle import (
    COST,
    DOCUMENTED,
    EVERY_STEP,
    GAUGE,
    GROWTH,
    HANDLES_GONE,
    NOTHING_LEFT,
    REFUSED,
    SERVED,
)
from quiesce.model import program_rules
from quiesce.model import rules as contract
from quiesce.model.program_rules import COPIED_DIRECTLY, ORDERED
from quiesce.model.results import Verdict

VERDICTS: Final[Mapping[Verdict, str]] = {
    Verdict.PASSED: "The operations ran and broke no rule.",
    Verdict.FAILED: "The operations ran and broke a rule; the finding says which, where and how.",
    Verdict.BROKEN_CASE: "The case can't be used: it passes with its fault switched on, or fails without it.",
    Verdict.UNSUPPORTED: "The backend lacks something that the case needs: neither pass nor failure.",
    Verdict.NOT_PROMISED: "The case tests a promise that the backend does not make: neither pass nor failure.",
    Verdict.KNOWN_UPSTREAM: "It broke a rule, and a `known:` line of the case says that this release does.",
    Verdict.INCONCLUSIVE: "There is no verdict: what was seen may have another cause, or a check was not completed.",
}

RULES_BY_SUBJECT: Final[Mapping[str, Mapping[str, str]]] = {
    "Allocators, with each operation": {
        **{rule.name: rule.sentence for rule in EVERY_STEP},
        SERVED: "A request that is valid and fits is served.",
        REFUSED: "A request is refused if it is invalid.",
        DOCUMENTED: "An error is one of those that the runtime documents for it.",
        "block_contents_survive": "The bytes that were written to a block are still there when it is read or freed.",
        "frees_match_allocations": "Only memory that was allocated is freed, and only once.",
    },
    "Allocators, at the end": {
        NOTHING_LEFT: "After quiescence, memory that nobody owns is gone.",
        HANDLES_GONE: "After quiescence, streams, events, graphs, instances and handles of libraries are gone.",
        GAUGE: "A gauge has the value that the case states.",
        GROWTH: "The gauge `retained` does not grow with the number of iterations.",
        COST: "The cost of an iteration does not grow with the number of iterations.",
        "known_defect_is_still_there": "A release that a case says is known to fail still fails.",
    },
    "Backends": contract.RULES,
    "What runs": {
        **contract.DRIVER_RULES,
        "device_survives_every_request": "A device answers after every request.",
        "process_survives_every_request": "The process that runs the case survives it.",
        "program_exits_with_success": "A subject's program ends with success.",
        "program_ends_in_time": "A subject's program ends in time.",
    },
    "Programs on the simulated runtime, and reports of native checkers": program_rules.RULES,
    "Leak checks": {
        "a_repeated_test_leaves_nothing_behind": "Repeating a test does not use ever more memory, files or threads.",
        "a_test_keeps_to_its_peak": "A test uses no more memory at a time than its marker allows.",
        "a_leak_check_comes_to_a_verdict": "The leak check of a test that asks for it says whether the test leaks.",
    },
}
"""Every rule whose name a finding can have, by what can break it."""

RULES: Final[Mapping[str, str]] = {
    name: sentence for rules in RULES_BY_SUBJECT.values() for name, sentence in rules.items()
}


def sentence_of(rule: str) -> str:
    """Return the sentence of a rule, or '' for one that a third party named."""
    return RULES.get(rule, "")


def rules_in_order(broken: Iterable[str]) -> tuple[tuple[str, str, bool], ...]:
    """Return name, sentence and whether it was broken: the broken ones first, then by name."""
    names = set(broken)
    known = [(name, sentence, name in names) for name, sentence in RULES.items()]
    return tuple(sorted(known, key=lambda each: (not each[2], each[0])))


_NUMBER: Final = re.compile(r"([A-Za-z0-9][\w-]*/[\w.-]+)#(\d+)", re.ASCII)

KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    ORDERED: ("microsoft/onnxruntime#12913", "rapidsai/rmm#2489", "numba/numba#3508"),
    NOTHING_LEFT: ("NVIDIA/DALI#3402", "jax-ml/jax#39145"),
    HANDLES_GONE: ("LLNL/camp#71", "huggingface/candle#165"),
    GROWTH: ("kokkos/kokkos#3167", "PaddlePaddle/Paddle#64621", "tracel-ai/burn#2487"),
    COPIED_DIRECTLY: ("cupy/cupy#8090",),
    "waits_name_live_streams": ("kokkos/kokkos#8006",),
}
"""Issues about such faults. The corpus has a case for each; a test compares the two."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A number as it was written; ``url`` is '' where it does not say which repository it belongs to."""

    text: str
    url: str


def reference(number: str) -> Reference:
    """Return ``owner/name#7`` with its address on GitHub."""
    match = _NUMBER.fullmatch(number)
    return Reference(number, f"https://github.com/{match[1]}/issues/{match[2]}" if match else "")
