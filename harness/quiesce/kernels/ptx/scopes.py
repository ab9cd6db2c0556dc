"""Names inside a function: blocks in braces may declare a name again, so each gets one that is unique."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from quiesce.kernels.ptx.declarations import Variable
from quiesce.kernels.ptx.operands import Register
from quiesce.kernels.ptx.types import Type

_NUMBER: Final = re.compile(r"(?:0|[1-9][0-9]{,9})\Z")


class Scopes:
    """The open blocks, innermost last, and what the whole function declared."""

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.current = 0
        self._parents: list[int] = [-1]
        self._registers: list[dict[str, Register]] = [{}]
        self._ranges: list[dict[str, tuple[int, Type]]] = [{}]
        self._variable_names: list[dict[str, str]] = [{}]
        self._labels: list[dict[str, str]] = [{}]

    def open(self) -> None:
        """Enter a block."""
        self._parents.append(self.current)
        self.current = len(self._parents) - 1
        for each in (self._registers, self._ranges, self._variable_names, self._labels):
            each.append({})

    def close(self) -> bool:
        """Leave a block; say whether one was open."""
        if not self.current:
            return False
        self.current = self._parents[self.current]
        return True

    def _unique(self, name: str) -> str:
        return f"{name}@{self.current}" if self.current else name

    def declare_register(self, name: str, declared: Type) -> None:
        """Declare one register."""
        self._registers[self.current][name] = Register(self._unique(name), declared)

    def declare_range(self, prefix: str, count: int, declared: Type) -> None:
        """Declare registers that are numbered from zero. They are made when they are met."""
        self._ranges[self.current][prefix] = (count, declared)

    def declare_variable(self, variable: Variable) -> None:
        """Declare memory of the function."""
        unique = self._unique(variable.name)
        self._variable_names[self.current][variable.name] = unique
        self.variables[unique] = replace(variable, name=unique)

    def declare_label(self, name: str) -> str | None:
        """Declare a label, and return its unique name; None where the block has one of that name."""
        labels = self._labels[self.current]
        return None if name in labels else labels.setdefault(name, self._unique(name))

    def find_register(self, name: str) -> Register | None:
        """Return the register that a name means here; None where it means something else."""
        scope = self.current
        while scope >= 0:
            found = self._registers[scope].get(name) or self._find_in_range(name, scope)
            if found is not None:
                return found
            scope = self._parents[scope]
        return None

    def _find_in_range(self, name: str, scope: int) -> Register | None:
        ranges = self._ranges[scope]
        if not ranges or not name[-1:].isdigit():
            return None
        for prefix, (count, declared) in ranges.items():
            digits = name[len(prefix) :]
            if name.startswith(prefix) and _NUMBER.match(digits) and int(digits) < count:
                register = Register(f"{name}@{scope}" if scope else name, declared)
                self._registers[scope][name] = register
                return register
        return None

    def find_variable(self, name: str) -> str:
        """Return the unique name of the function's variable that a name means here, or else the name itself."""
        scope = self.current
        while scope >= 0:
            if name in self._variable_names[scope]:
                return self._variable_names[scope][name]
            scope = self._parents[scope]
        return name

    def find_label(self, name: str, scope: int) -> str | None:
        """Return the unique name of the label that a name means in a scope."""
        while scope >= 0:
            if name in self._labels[scope]:
                return self._labels[scope][name]
            scope = self._parents[scope]
        return None
