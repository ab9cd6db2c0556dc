"""Words of PTX, with their places: names with their modifiers, directives, literals and punctuation.

https://docs.nvidia.com/cuda/parallel-thread-execution/#syntax
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from typing import Final

from quiesce.model.errors import RefusedKernel

_WORD: Final = re.compile(
    r"""(?:\s+|//[^\n]*|/\*(?:.*?\*/|.*\Z))*  # what is between words
    (
      \.(?:loc|file)\b[^\n;]*               # a directive that ends with its line
    | "(?:[^"\\\n]|\\.)*"
    | \d+\.\d+(?:[eE][+-]?\d+)?\b
    | [\w$%]+(?:(?:\.|::)[\w$%]+)*          # add.rn.f32, %tid.x, ld.shared::cta.u32, 0f3F800000
    | \.[\w$%]+                            # .reg
    | [^\s]                                 # punctuation, and what is none: it is refused where it stands
    | $
    )""",
    re.VERBOSE | re.DOTALL,
)
END: Final = ""


class Lines:
    """Which line of a text a place is on; the text is looked at when that is asked first."""

    def __init__(self, text: str) -> None:
        self._text = text

    @functools.cached_property
    def _starts(self) -> list[int]:
        lengths = (len(line) + 1 for line in self._text.split("\n"))
        return list(itertools.accumulate(lengths))[:-1]

    def line_of(self, place: int) -> int:
        """Return the number of the line, from one."""
        return bisect.bisect_right(self._starts, place) + 1


class Tokens:
    """The words of a part of a text, one after another."""

    def __init__(self, text: str, start: int, end: int, lines: Lines) -> None:
        self.text = text
        self.lines = lines
        self.words: list[str] = []
        self.places: list[int] = []
        self.at = 0
        for match in _WORD.finditer(text, start, end):
            self.words.append(match[1])
            self.places.append(match.start(1))
        if not self.words or self.words[-1] != END:
            self.words.append(END)
            self.places.append(end)

    def peek(self) -> str:
        """Return the next word, empty at the end."""
        return self.words[self.at]

    def next(self) -> str:
        """Return the next word and go on."""
        word = self.words[self.at]
        if self.at < len(self.words) - 1:
            self.at += 1
        return word

    def skip(self, word: str) -> bool:
        """Go on if this word comes next; say whether it did."""
        if self.words[self.at] != word:
            return False
        self.next()
        return True

    def expect(self, word: str) -> None:
        """Go past this word. Raises RefusedKernel where another one comes."""
        if not self.skip(word):
            raise self.refuse(f"'{word}' is missing")

    def refuse(self, reason: str) -> RefusedKernel:
        """Return an error about the next word."""
        place = self.places[self.at]
        end = self.text.find("\n", place)
        shown = self.text[place : end if end >= 0 else len(self.text)]
        return RefusedKernel(reason, shown[:80], self.line())

    def line(self) -> int:
        """Return the line of the next word."""
        return self.lines.line_of(self.places[self.at])
