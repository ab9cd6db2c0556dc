"""Texts that are nearly PTX: those of the tests beside this file, with a few changes each.

``python -m tests.kernels.hostile SEED COUNT`` compiles as many of them, in a process whose memory and time are limited.
"""

from __future__ import annotations

import ast
import contextlib
import random
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Final

from tests.kernels.compiling import translate_kernel
from tests.kernels.programs import HEADER, kernel_around, with_registers

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.compiler import compile_text
from quiesce.simulator.kernels.ptx.module import Module

TEXT_SECONDS: Final = 20
MEMORY_BYTES: Final = 4 << 30
_TYPES: Final = ("u32", "f32", "u64", "f64", "u16", "pred")
_WORDS: Final = re.compile(r"[\w$%.:]+|\S")
_NUMBER: Final = re.compile(r"\b\d+\b")
_HUGE: Final = ("4294967295", "-1", "0", "99999999999999999999", "9" * 5000, "0x7fffffffffffffff", "1099511627776")
_PUNCTUATION: Final = ";{}[]()<>.,@!-+|:%=\"'\\/*\0\x80\n"
_Mutation = Callable[[random.Random, str], str]


class TooSlow(Exception):
    """A text was not finished in its time."""


@cache
def originals() -> tuple[str, ...]:
    """Return kernels out of the tests in this folder: whole texts, and instructions with a kernel around them."""
    forms = (Path(__file__).parent / "forms.txt").read_text().partition("refused\n")[0].splitlines()
    found = {"\n".join(forms[start : start + 8]) for start in range(2, len(forms), 8)}
    found |= {text for path in Path(__file__).parent.glob("test_*.py") for text in _strings(path)}
    kernels = {whole for text in sorted(found) for whole in _as_kernel(text)}
    return tuple(sorted(kernels))


def _strings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ";" in node.value:
            yield node.value


def _as_kernel(text: str) -> Iterator[str]:
    wrapped = [kernel_around(text, [type_, type_, type_], [type_]) for type_ in _TYPES]
    for whole in (HEADER + text, text, with_registers(text), *wrapped):
        if _translates(whole):
            yield whole
            return


def _translates(text: str) -> bool:
    try:
        module = Module(text)
        return bool(module.entries) and bool(translate_kernel(module, module.entries[0]))
    except RefusedKernel:
        return False


def mutated(generator: random.Random, text: str) -> str:
    """Return a text with one change or a few."""
    for _ in range(generator.choice((1, 1, 1, 2, 3, 8))):
        mutation: _Mutation = generator.choice(_MUTATIONS)
        text = mutation(generator, text)
    return text


def _span(generator: random.Random, text: str) -> tuple[int, int]:
    words = [match.span() for match in _WORDS.finditer(text)]
    first = generator.randrange(len(words)) if words else 0
    last = min(len(words) - 1, first + generator.choice((0, 0, 0, 1, 4, 20)))
    return (words[first][0], words[last][1]) if words else (0, 0)


def _delete(generator: random.Random, text: str) -> str:
    start, end = _span(generator, text)
    return text[:start] + text[end:]


def _double(generator: random.Random, text: str) -> str:
    start, end = _span(generator, text)
    return text[:end] + " " + text[start:end] + text[end:]


def _swap(generator: random.Random, text: str) -> str:
    (start, end), (other, other_end) = sorted((_span(generator, text), _span(generator, text)))
    if other < end:
        return text
    return text[:start] + text[other:other_end] + text[end:other] + text[start:end] + text[other_end:]


def _borrow(generator: random.Random, text: str) -> str:
    other = generator.choice(originals())
    start, end = _span(generator, text)
    first, last = _span(generator, other)
    return text[:start] + other[first:last] + text[end:]


def _renumber(generator: random.Random, text: str) -> str:
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return text
    chosen = generator.choice(numbers)
    new = generator.choice((*_HUGE, str(generator.randrange(70)), str(1 << generator.randrange(70))))
    return text[: chosen.start()] + new + text[chosen.end() :]


def _flip(generator: random.Random, text: str) -> str:
    place = generator.randrange(max(1, len(text)))
    new: str = generator.choice((chr(generator.randrange(256)), *_PUNCTUATION))
    return text[:place] + new + text[place + 1 :]


def _truncate(generator: random.Random, text: str) -> str:
    return text[: generator.randrange(max(1, len(text)))]


def _nest(generator: random.Random, text: str) -> str:
    start, end = _span(generator, text)
    pair: str = generator.choice(("{}", "()", "[]", "/ ", "<>"))
    depth: int = generator.choice((2, 50, 3000))
    return text[:start] + pair[0] * depth + text[start:end] + pair[1] * depth + text[end:]


def _repeat(generator: random.Random, text: str) -> str:
    start, end = _span(generator, text)
    line = text[start:end] + generator.choice(("", ";", "\n", ";\n", ","))
    count: int = generator.choice((3, 100, 2000))
    return text[:start] + line * count + text[end:]


_MUTATIONS: Final[tuple[_Mutation, ...]] = (
    *(_delete, _double, _swap, _swap, _borrow, _borrow, _borrow, _renumber, _renumber, _flip, _flip),
    *(_truncate, _nest, _repeat),
)


def is_compiled(text: str, tuned: bool = False, checks: bool = False) -> bool:
    """Say whether a text becomes an object. Anything but that and a refusal is raised."""
    try:
        module = Module(text)
        entry = module.entries[0] if module.entries else "k"
        translated = translate_kernel(module, entry, tuned, checks)
    except RefusedKernel:
        return False
    return compile_text(translated).startswith(b"\x7fELF")


def _stop(_: int, __: FrameType | None) -> None:
    raise TooSlow


def main(seed: int, count: int) -> int:
    """Compile ``count`` texts; write those that went wrong, and return how many did."""
    kernels = originals()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGPROF, _stop)
    compiled = wrong = 0
    for number in range(seed, seed + count):
        generator = random.Random(number)
        text = mutated(generator, generator.choice(kernels))
        try:
            signal.setitimer(signal.ITIMER_PROF, TEXT_SECONDS)  # of the processor: a busy machine takes longer
            compiled += is_compiled(text, tuned=number % 2 == 1, checks=number % 3 == 1)
        except (Exception, RecursionError) as error:  # whatever it is: it is no refusal by name
            wrong += 1
            sys.stdout.write(f"text {number}: {type(error).__name__}: {str(error)[:200]}\n")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    sys.stdout.write(f"{count} texts: {compiled} compiled, {count - compiled - wrong} refused, {wrong} wrong\n")
    return wrong


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main(int(sys.argv[1]), int(sys.argv[2])) > 0)
