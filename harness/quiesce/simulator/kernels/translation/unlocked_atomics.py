"""Atomic operations on shared memory as a load, a computation and a store.

The threads of a block run in one thread of the processor, one after another, and nobody else uses their shared memory.
So nothing comes between a load and a store. The processor need not lock the memory, for which it waits until all stores
before have taken place. LLVM does not leave locks out by itself. Up to here the operations are marked with a scope
(https://llvm.org/docs/LangRef.html#atomic-memory-ordering-constraints), and widening runs them lane after lane.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

ORDER: Final = 'syncscope("singlethread") monotonic'
"""The order of an operation that needs no lock."""
_CHANGE: Final = re.compile(
    rf"\s*(%\S+) = atomicrmw (\w+) ptr (\S+), (\w+) (\S+) {re.escape(ORDER)}, (align \d+).*", re.ASCII
)
_EXCHANGE: Final = re.compile(
    rf"\s*(%\S+) = cmpxchg ptr (\S+), (\w+) (\S+), \w+ (\S+) {re.escape(ORDER)} monotonic, (align \d+).*", re.ASCII
)


def unlock(text: str) -> str:
    """Return a text of LLVM in which the marked operations are written in plain instructions."""
    return "\n".join(each for line in text.split("\n") for each in _lines(line)) if ORDER in text else text


def _lines(line: str) -> list[str]:
    change = _CHANGE.fullmatch(line)
    if change:
        old, operation, pointer, type_, value, alignment = change.groups()
        lines = _COMPUTED[operation](f"{old}.new", type_, old, value)
        stored = value if operation == "xchg" else f"{old}.new"
        return [
            f"{old} = load {type_}, ptr {pointer}, {alignment}",
            *lines,
            f"store {type_} {stored}, ptr {pointer}, {alignment}",
        ]
    exchange = _EXCHANGE.fullmatch(line)
    if exchange:
        both, pointer, type_, expected, wanted, alignment = exchange.groups()
        return [
            f"{both}.old = load {type_}, ptr {pointer}, {alignment}",
            f"{both}.is = icmp eq {type_} {both}.old, {expected}",
            f"{both}.new = select i1 {both}.is, {type_} {wanted}, {type_} {both}.old",
            f"store {type_} {both}.new, ptr {pointer}, {alignment}",
            f"{both}.first = insertvalue {{{type_}, i1}} poison, {type_} {both}.old, 0",
            f"{both} = insertvalue {{{type_}, i1}} {both}.first, i1 {both}.is, 1",
        ]
    return [line]


def _compare(predicate: str) -> Callable[[str, str, str, str], list[str]]:
    return lambda new, type_, old, value: [
        f"{new}.is = icmp {predicate} {type_} {old}, {value}",
        f"{new} = select i1 {new}.is, {type_} {old}, {type_} {value}",
    ]


def _increase(new: str, type_: str, old: str, value: str) -> list[str]:
    """Add 1, and begin again with 0 after the value."""
    return [
        f"{new}.more = add {type_} {old}, 1",
        f"{new}.is = icmp uge {type_} {old}, {value}",
        f"{new} = select i1 {new}.is, {type_} 0, {type_} {new}.more",
    ]


def _decrease(new: str, type_: str, old: str, value: str) -> list[str]:
    """Subtract 1, and begin again with the value after 0 and where it was more."""
    return [
        f"{new}.less = sub {type_} {old}, 1",
        f"{new}.none = icmp eq {type_} {old}, 0",
        f"{new}.more = icmp ugt {type_} {old}, {value}",
        f"{new}.is = or i1 {new}.none, {new}.more",
        f"{new} = select i1 {new}.is, {type_} {value}, {type_} {new}.less",
    ]


def _plain(operation: str) -> Callable[[str, str, str, str], list[str]]:
    return lambda new, type_, old, value: [f"{new} = {operation} {type_} {old}, {value}"]


_COMPUTED: Final[dict[str, Callable[[str, str, str, str], list[str]]]] = {
    **{each: _plain(each) for each in ("add", "sub", "and", "or", "xor", "fadd")},
    **{"max": _compare("sgt"), "min": _compare("slt"), "umax": _compare("ugt"), "umin": _compare("ult")},
    **{"xchg": lambda *_: [], "uinc_wrap": _increase, "udec_wrap": _decrease},
}
