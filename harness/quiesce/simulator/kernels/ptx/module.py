"""A module of PTX, split at its top level, and the functions of CUDA's library for kernels that are linked to it.

Bodies are parsed when they are wanted: some modules have 25 MB of text.
"""

from __future__ import annotations

import binascii
import functools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from quiesce.model.errors import RefusedKernel
from quiesce.model.findings import is_of_toolkit
from quiesce.simulator.kernels.ptx.function import LINKAGE, Parameter, Variable, parse_parameters, parse_variables
from quiesce.simulator.kernels.ptx.tokens import END, Lines, Tokens

PREFIX: Final = "cudaCG"
"""Begins their names."""

_WAIT: Final = """
.weak .func (.param .b32 result) {name}(.param .b64 handle, .param .b32 flags)
{{
.reg .pred %p<4>;
.reg .b32 %r<7>;
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [handle];
setp.ne.s64 %p1, %rd1, 0;
@%p1 bra $has_workspace;
st.param.b32 [result], 1;
ret;
$has_workspace:
barrier.sync 0;
mov.u32 %r1, %tid.x;
mov.u32 %r2, %tid.y;
or.b32 %r1, %r1, %r2;
mov.u32 %r2, %tid.z;
or.b32 %r1, %r1, %r2;
setp.ne.s32 %p2, %r1, 0;
@%p2 bra $come;
mov.u32 %r3, %nctaid.x;
mov.u32 %r4, %nctaid.y;
mul.lo.s32 %r3, %r3, %r4;
mov.u32 %r4, %nctaid.z;
mul.lo.s32 %r3, %r3, %r4;
atom.add.release.gpu.u32 %r5, [%rd1+8], 1;
div.u32 %r5, %r5, %r3;
mad.lo.s32 %r5, %r5, %r3, %r3;
$again:
ld.acquire.gpu.u32 %r6, [%rd1+8];
setp.lt.u32 %p3, %r6, %r5;
@%p3 bra $again;
$come:
barrier.sync 0;
st.param.b32 [result], 0;
ret;
}}
"""
DEVICE_RUNTIME: Final = (
    """
.weak .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
.reg .pred %p1;
.reg .b32 %r<4>;
.reg .b64 %rd<3>;
ld.param.u32 %r3, [scope];
setp.eq.u32 %p1, %r3, 1;
mov.u32 %r1, %envreg1;
mov.u32 %r2, %envreg2;
mov.b64 %rd1, {%r2, %r1};
selp.b64 %rd2, %rd1, 0, %p1;
st.param.b64 [result], %rd2;
ret;
}
"""
    + _WAIT.format(name="cudaCGSynchronize")
    + _WAIT.format(name="cudaCGSynchronizeGrid")
)


_TOP: Final = re.compile(r'//[^\n]*|/\*(?:.*?\*/|.*\Z)|"(?:[^"\\\n]|\\.)*"|[{;]', re.DOTALL)
_BRACES: Final = re.compile(r'//[^\n]*|/\*(?:.*?\*/|.*\Z)|"(?:[^"\\\n]|\\.)*"|[{}]', re.DOTALL)
_HIDDEN_BRACE: Final = re.compile(r'//[^{}\n]{0,200}[{}]|//[^{}\n]{201}|/\*|"[^"{}\n]{0,200}[{}]|"[^"{}\n]{201}')
"""Longer comments and texts may have a brace too. Without the bound, a text could make this take for ever."""
_FUNCTION: Final = re.compile(r"\.(?:entry|func)\b")
_VARIABLE: Final = re.compile(r"\.(?:global|const|shared|tex)\b")
_COMMENT: Final = re.compile(r"//[^\n]*|/\*(?:.*?\*/|.*\Z)", re.DOTALL)
_NAME: Final = re.compile(r"\.(entry|func)\b\s*(?:\([^)]*\)\s*)?(?:\.\w+\s+)*([\w$%]+)")
_VERSION: Final = re.compile(r"\.version\s+(\d+)\.(\d+)")
_BOUNDS: Final = re.compile(r"\.(?:max|req)ntid\s+(\d{1,9}(?:\s*,\s*\d{1,9}){0,2})")
_BLOCK_THREADS_MAX: Final = 1024
_FILE: Final = re.compile(r'^[ \t]*\.file\s+(\d+)\s+"((?:[^"\\\n]|\\.)*)"', re.MULTILINE)
_TEXTS: Final = re.compile(r"^(?=[ \t]*\.version\b)", re.MULTILINE)
_NUMBERED: Final = re.compile(r"^([ \t]*\.(?:file|loc)[ \t]+)(\d+)(.*?\binlined_at[ \t]+(?=\d))?(\d*)", re.MULTILINE)
"""The number of a file, and a second one behind ``inlined_at``."""
_SOURCE: Final = re.compile(r"^// quiesce-source ([A-Za-z0-9+/=]+) ([A-Za-z0-9+/=]*)$", re.MULTILINE)
"""A comment of ``native/compilers/source_texts.c``: the name of a file and its text, in Base64."""
_TARGET: Final = re.compile(r"\.target\s+(?:sm|compute)_(\d+)")
_LINE_DIRECTIVES: Final = frozenset({".version", ".target", ".address_size"})


@dataclass(frozen=True, slots=True)
class FunctionText:
    """Where a function is in the text. ``body`` is None where it is declared only."""

    name: str
    is_entry: bool
    header: tuple[int, int]
    body: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and returns."""

    returned: tuple[Parameter, ...]
    parameters: tuple[Parameter, ...]


def _with_files_apart(text: str) -> str:
    """Give each of the texts that were linked numbers of its own for its source files; line breaks stay."""
    if text.count(".version") < 2:
        return text
    first, *others = _TEXTS.split(text)
    if len(others) < 2:
        return text
    last = 0

    def numbered(found: re.Match[str]) -> str:
        own = [str(int(each) + last) if each else "" for each in (found[2], found[4])]
        return f"{found[1]}{own[0]}{found[3] or ''}{own[1]}"

    parts = []
    for each in others:
        files = [int(found[1]) for found in _FILE.finditer(each)]
        parts.append(_NUMBERED.sub(numbered, each))
        last += max(files, default=0)
    return first + "".join(parts)


class Module:
    """The functions and variables of a text, by name. Raises RefusedKernel where it can't be split."""

    def __init__(self, text: str) -> None:
        self.text = _with_files_apart(text.rstrip("\0")) + (DEVICE_RUNTIME if PREFIX in text else "")
        self.lines = Lines(self.text)
        self.functions: dict[str, FunctionText] = {}
        self._twice: set[str] = set()
        """Functions that different texts define, of those that were linked: which one is meant can't be told."""
        self._variable_texts: list[tuple[int, int]] = []
        self._variables: dict[str, Variable] | None = None
        for start, end, body in self._statements():
            self._add(start, end, body)

    @property
    def version(self) -> tuple[int, int]:
        """Return the version of PTX that the text is written in; (0, 0) where it does not say."""
        found = _VERSION.search(self.text)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    @property
    def architecture(self) -> int:
        """Return the number of the virtual architecture: 80 for ``sm_80``; 0 where the text does not say."""
        found = _TARGET.search(self.text)
        return int(found[1]) if found else 0

    @functools.cached_property
    def files(self) -> dict[int, str]:
        """Return the source files that ``.loc`` directives name, by number."""
        return {int(found[1]): found[2] for found in _FILE.finditer(self.text)}

    @property
    def sources(self) -> dict[str, str]:
        """Return the texts of source files that came along with the text, by the names of the files."""
        if "// quiesce-source " not in self.text:
            return {}
        return {_decoded(found[1]): _decoded(found[2]) for found in _SOURCE.finditer(self.text)}

    @functools.cached_property
    def toolkit_files(self) -> frozenset[int]:
        """Return the numbers of the source files that belong to a toolkit for device code."""
        return frozenset(number for number, name in self.files.items() if is_of_toolkit(name))

    @property
    def entries(self) -> tuple[str, ...]:
        """Return the names of the kernels."""
        return tuple(name for name, each in self.functions.items() if each.is_entry)

    @property
    def variables(self) -> dict[str, Variable]:
        """Return the variables of the module by name."""
        if self._variables is None:
            self._variables = {}
            for start, end in self._variable_texts:
                for each in _parse_variable_statement(Tokens(self.text, start, end, self.lines)):
                    known = self._variables.get(each.name)
                    if known is None or known.is_external:
                        self._variables[each.name] = each
        return self._variables

    @property
    def declarations(self) -> str:
        """Return the text of the module's variables."""
        return "".join(self.text[start:end] for start, end in self._variable_texts)

    def declaration_tokens(self, variable: str) -> Tokens:
        """Return the words of the statement that declares a variable. Raises RefusedKernel where none does."""
        for start, end in self._variable_texts:
            if variable not in self.text[start:end]:
                continue
            tokens = Tokens(self.text, start, end, self.lines)
            if any(each.name == variable and not each.is_external for each in _parse_variable_statement(tokens)):
                return Tokens(self.text, start, end, self.lines)
        raise RefusedKernel(f"there is no variable '{variable}' in the module")

    def find(self, name: str) -> FunctionText:
        """Return a function by name. Raises RefusedKernel where there is none, or more than one."""
        if name in self._twice:
            raise RefusedKernel(f"two of the texts that were linked have a function '{name}'")
        try:
            return self.functions[name]
        except KeyError:
            raise RefusedKernel(f"there is no function '{name}' in the module") from None

    def signature(self, function: FunctionText) -> Signature:
        """Parse what a function takes and returns."""
        tokens = Tokens(self.text, *function.header, self.lines)
        while tokens.peek() not in (".entry", ".func"):
            if tokens.next() == END:
                raise tokens.refuse("a function has no name")
        tokens.next()
        returned = parse_parameters(tokens)
        while tokens.peek().startswith("."):  # .noreturn, .attribute
            tokens.next()
        tokens.next()
        return Signature(returned, parse_parameters(tokens))

    def threads_max(self, kernel: str) -> int:
        """Return how many threads a block of a kernel may have by its launch bounds, 0 where it has none."""
        start, end = self.find(kernel).header
        found = _BOUNDS.search(self.text, start, end)
        return min(math.prod(map(int, found[1].split(","))), _BLOCK_THREADS_MAX) if found else 0

    def body_tokens(self, function: FunctionText) -> Tokens:
        """Return the words between the braces of a function. Raises RefusedKernel where it has none."""
        if function.body is None:
            raise RefusedKernel(f"function '{function.name}' is declared, but not in this module")
        return Tokens(self.text, *function.body, self.lines)

    def _statements(self) -> Iterator[tuple[int, int, tuple[int, int] | None]]:
        """Yield the start and the end of each header, and the inside of the braces that follow it."""
        text = self.text
        start = at = looked = 0
        while found := _TOP.search(text, at):
            at = found.end()
            mark = found[0]
            if mark == ";":
                yield start, at, None
                start = looked = at
            elif mark == "{":
                end = self._closing_brace(at)
                if _FUNCTION.search(text, looked, found.start()):
                    yield start, found.start(), (at, end)
                    start = end + 1
                elif text.find(".section", looked, found.start()) >= 0:
                    start = end + 1
                at = looked = end + 1

    def _closing_brace(self, at: int) -> int:
        """Return where a brace closes; comments and strings are looked at only if one has a brace in it."""
        end, depth = at, 1
        while depth:
            closing = self.text.find("}", end)
            if closing < 0:
                break
            depth += self.text.count("{", end, closing) - 1
            end = closing + 1
        if not depth and not _HIDDEN_BRACE.search(self.text, at, end):
            return end - 1
        return self._closing_brace_by_words(at)

    def _closing_brace_by_words(self, at: int) -> int:
        depth = 1
        opened = at
        while found := _BRACES.search(self.text, at):
            at = found.end()
            depth += (found[0] == "{") - (found[0] == "}")
            if not depth:
                return found.start()
        raise RefusedKernel("a brace is not closed", line=self.lines.line_of(opened))

    def _add(self, start: int, end: int, body: tuple[int, int] | None) -> None:
        text = self.text
        function = _FUNCTION.search(text, start, end)
        if function is None:
            if _VARIABLE.search(text, start, end):
                self._variable_texts.append((start, end))
            return
        head = _COMMENT.sub(" ", text[start:end])
        found = _NAME.search(head)
        if found is None:
            if _VARIABLE.search(head):
                self._variable_texts.append((start, end))
            return
        known = self.functions.get(found[2])
        if known is not None and known.body and body and ".weak" not in head:
            self._twice.add(found[2])
        if known is None or known.body is None:
            self.functions[found[2]] = FunctionText(found[2], found[1] == "entry", (start, end), body)


def _decoded(text: str) -> str:
    return binascii.a2b_base64(text).decode("utf-8", "replace")


def _parse_variable_statement(tokens: Tokens) -> tuple[Variable, ...]:
    """Read the variables of one statement, after directives without a semicolon."""
    is_external = False
    while (word := tokens.peek()) not in (".global", ".const", ".shared"):
        if word in LINKAGE:
            is_external = is_external or word in (".extern", ".common")
        elif word == END or (
            word.startswith(".") and word not in _LINE_DIRECTIVES and word[:5] not in (".loc ", ".file")
        ):
            return ()
        tokens.next()
    return parse_variables(tokens, is_external)
