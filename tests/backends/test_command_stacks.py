"""Stacks of driver programs: lines that are frames get names, everything else stays as it was written."""

from __future__ import annotations

import pytest

from quiesce.backends.command import stacks
from quiesce.backends.command.stacks import with_names


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Stand in for the compiler's tools, and note what they are asked."""
    asked: list[list[str]] = []

    def said(command: list[str]) -> str:
        asked.append(command)
        return "pool::free(int)" if command[0] == "c++filt" else "pool::take()\n??:0"

    stacks._demangled.cache_clear()
    stacks._function_at.cache_clear()
    monkeypatch.setattr(stacks, "_said", said)
    return asked


def test_a_frame_without_a_name_gets_that_of_the_function_before_the_address(tools: list[list[str]]) -> None:
    assert with_names(f"boom\n  {__file__}(+0x4577)\n") == f"boom\n  {__file__}(pool::take())\n"
    assert tools[0][-1] == "0x4576"


def test_a_mangled_name_is_written_as_in_the_source() -> None:
    assert with_names("  ./driver(_ZN4pool4freeEi+0x1a)") == "  ./driver(pool::free(int)+0x1a)"


@pytest.mark.parametrize(
    "text",
    [
        "  ./no such file(+0x4577)",
        "  libc.so.6(abort+0xd3)",
        "f(+0x1)",
        "  a driver (+0x) says",
        "  x(+0x12345678901234567)",
    ],
)
def test_what_is_no_frame_of_a_file_stays(text: str, tools: list[list[str]]) -> None:
    assert with_names(text) == text
    assert tools == []


def test_a_frame_is_looked_up_once(tools: list[list[str]]) -> None:
    for _ in range(3):
        with_names(f"  {__file__}(+0x10)\n  {__file__}(+0x10)")
    assert len(tools) == 1
