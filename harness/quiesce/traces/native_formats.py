"""Which leak checker wrote a report: told by the report itself, or by the caller."""

from __future__ import annotations

from typing import Final

from quiesce.traces import leak_sanitizer, msvc_dump, valgrind_xml
from quiesce.traces.log_lines import log_lines
from quiesce.traces.native_leaks import Format, UnreadableReport

FORMATS: Final = {each.tool: each for each in (valgrind_xml.FORMAT, leak_sanitizer.FORMAT, msvc_dump.FORMAT)}
"""The formats by the names of their tools."""


def detect(path: str) -> Format:
    """Return the format of a report: an XML document is Valgrind's, a log is whose words it holds first.

    Raises :class:`quiesce.traces.native_leaks.UnreadableReport` where it is none, and :class:`OSError`.
    """
    begun = False
    for _, line in log_lines(path):
        if not begun and line.strip():
            begun = True
            if line.lstrip().startswith(valgrind_xml.FORMAT.marks):
                return valgrind_xml.FORMAT
        for each in (leak_sanitizer.FORMAT, msvc_dump.FORMAT):
            if any(mark in line for mark in each.marks):
                return each
    names = ", ".join(FORMATS)
    raise UnreadableReport(
        path,
        None,
        "no leak report is in it, of Valgrind (--xml=yes), LeakSanitizer or the MSVC runtime",
        f"write --format NAME ({names}) if a log without a report is that tool's way to say that nothing leaked",
    )
