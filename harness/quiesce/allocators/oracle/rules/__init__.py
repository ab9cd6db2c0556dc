"""The rules, by what they read. ``EVERY_STEP`` are checked after each operation, in this order.

Universal ones always apply; those that read a promise apply only where the backend made it.
"""

from __future__ import annotations

from typing import Final

from quiesce.allocators.oracle.rule import Rule
from quiesce.allocators.oracle.rules import accounting, answers, closing, memory, order, policy

BEFORE_THE_ANSWER: Final[tuple[Rule, ...]] = (
    *memory.RULES,
    *order.RULES,
    *policy.RULES,
    *answers.RULES,
)
"""What an answer broke, whatever was permitted: it explains a wrong answer better than the answer itself."""

AFTER_THE_ANSWER: Final[tuple[Rule, ...]] = (*closing.RULES, *accounting.RULES)
"""What is counted: it means something only once the answer was a permitted one."""

EVERY_STEP: Final[tuple[Rule, ...]] = (*BEFORE_THE_ANSWER, *AFTER_THE_ANSWER)

NAMES: Final[frozenset[str]] = frozenset(
    [rule.name for rule in EVERY_STEP] + list(closing.NAMES) + list(answers.EXPECTATION_NAMES)
)
"""Every name that a finding of the oracle can carry, and so every name that a case can state in ``finds:``."""
