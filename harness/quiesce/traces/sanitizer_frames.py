"""The frames of a sanitizer's stacks, with symbols or without."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Final

from quiesce.traces.native_leaks import Frame

_FRAME: Final = re.compile(r"\s*#\d+ 0x[0-9a-f]+ +(?:in )?(.*)")
_MODULE: Final = re.compile(r"\(([^()]*\+0x[0-9a-f]+)\)(?: \(BuildId: [0-9a-f]+\))?$")


def frame_in(line: str) -> Frame | None:
    """Return the frame of a line, or None where there is none.

    What follows the address is ``make /src/leaky.c:4``, ``make (/lib/liblsan.so.0+0x1)`` or the latter without a name.
    """
    match = _FRAME.match(line)
    if match is None:
        return None
    text = match[1].strip()
    if module := _MODULE.search(text):
        return Frame(text[: module.start()].strip(), PurePath(module[1]).name)
    function, space, place = text.rpartition(" ")
    return Frame(function, PurePath(place).name) if space else Frame(text, "")
