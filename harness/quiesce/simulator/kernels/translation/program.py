"""One kernel as a whole: what all its functions share, and what the object tells the runtime."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from quiesce.simulator.kernels.ptx.function import Function, Instruction, Variable, require_memory
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.ptx.operands import Group, Symbol
from quiesce.simulator.kernels.ptx.parsing import parse_function
from quiesce.simulator.kernels.translation.accesses import AccessKind, Judged, SharedArrays
from quiesce.simulator.kernels.translation.spin_loops import without_idle_pauses

SHARED_BYTES_MAX: Final = 232_448
LOCAL_BYTES_MAX: Final = 524_288
DYNAMIC_ALIGNMENT: Final = 16
RESERVED_BYTES: Final = 1024
"""Of shared memory, for cooperative groups: devices from 8.0 on have so much in each block."""
MEMORY_BASE: Final = 0x305AC6DFF000
"""Where memory of devices lies in most processes; ``native/memory/base.h`` has the same number."""
_USES: Final = frozenset({"ld", "ldu", "st", "atom", "red", "cp"})
_PRIVATE: Final = frozenset({"param", "local", "const"})
_PLACED_MAX: Final = 100
"""In a kernel that calls more functions, those of headers are translated once, and told by their own lines."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the ways in which a kernel is compiled: for each there is an object of its own."""

    tuned: bool = False
    """With loops over all threads of a block where there is a loop or a barrier; else each thread runs by itself."""
    wide: bool = False
    """With a function for a row of threads in place of such loops, where a kernel can be widened."""
    checks: bool = False
    """Accesses are judged while the kernel runs."""
    backwards: bool = False
    """The threads of a block run from the last to the first, unless they wait for each other."""
    traced: bool = False
    """The runtime is told of each round of a loop."""
    memory_base: int = MEMORY_BASE
    """Where memory of devices begins in the process that runs the kernel."""
    quick: bool = False
    """Without rows where they take long to compile. The object then says from how many threads on they are worth it."""


PLAIN: Final = Variant()


@dataclass(frozen=True, slots=True)
class SharedUse:
    """How the threads of a block use shared memory together, as far as checks have to know."""

    is_judged: bool = False
    """Whether races in it are judged as well."""
    has_copies: bool = False
    """Whether threads copy to it and wait for that later."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the text where memory is touched. ``text`` is the instruction there, ``caller`` inlines it."""

    line: int
    file: int
    source_line: int
    text: str = ""
    caller: tuple[int, int] = (0, 0)
    array: int = 0
    """The number of the array in shared memory that it has to stay in, from 1 on; 0: none is known."""

    def numbers(self) -> tuple[int, ...]:
        """Return what the runtime is told of it."""
        return self.line, self.file, self.source_line, *self.caller, self.array


@dataclass(frozen=True, slots=True)
class Called:
    """A function by name, and where it is called where that is told in place of its own lines."""

    name: str
    location: tuple[int, int] = (0, 0)
    caller: tuple[int, int] = (0, 0)


def callee_of(i: Instruction) -> str | None:
    """Return the name of the function that an instruction calls."""
    if i.opcode != "call":
        return None
    names = [operand for operand in i.operands if not isinstance(operand, Group)]
    return names[0].name if names and isinstance(names[0], Symbol) else None


def placed(function: Function, location: tuple[int, int], caller: tuple[int, int]) -> Function:
    """Return a function whose instructions all have one place in the source."""
    items = (
        replace(item, location=location, caller=caller) if isinstance(item, Instruction) else item
        for item in function.items
    )
    return replace(function, items=tuple(items))


@dataclass(slots=True)
class Program:
    """What the functions of a kernel declare and ask for while they are translated."""

    module: Module
    variant: Variant = PLAIN
    shared_use: SharedUse = SharedUse()
    functions: dict[str, Function] = field(default_factory=dict)
    declarations: set[str] = field(default_factory=set)
    variables: list[str] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    numbers: dict[Called, int] = field(default_factory=dict)
    """Each function that is called or whose address is taken, by the number that its name in LLVM has."""
    checks_called: dict[Judged, int] = field(default_factory=dict)
    """What the checks depend on that are functions of their own, with the numbers that their names have."""
    arrays: dict[tuple[int, int], str] = field(default_factory=dict)
    """The arrays of shared memory that accesses have to stay in: where they lie, how long they are, their names."""
    noted_words: set[tuple[int, AccessKind]] = field(default_factory=set)
    """The accesses to shared memory that kernels note by themselves: their sizes, and whether they write."""
    noted_rows: set[int] = field(default_factory=set)
    """The sizes of loads from shared memory that rows of threads note at once, all from one place."""
    local_bytes: int = 0
    shared_bytes: int = 0
    uses_reserved: bool = False
    """Whether it uses the shared memory that a device has in each block for cooperative groups."""
    _shared: dict[str, int] = field(default_factory=dict)
    _dynamic: dict[str, int] = field(default_factory=dict)
    _origins: dict[str, SharedArrays] = field(default_factory=dict)
    _told_by_caller: dict[str, bool] = field(default_factory=dict)
    _memory_users: dict[str, bool] = field(default_factory=dict)

    def parse(self, name: str) -> Function:
        """Return a function of the module, parsed once."""
        if name not in self.functions:
            self.functions[name] = without_idle_pauses(parse_function(self.module, self.module.find(name)))
        return self.functions[name]

    def declare(self, declaration: str) -> None:
        """Note that a function from outside is called."""
        self.declarations.add(declaration)

    def number_of(self, name: str, call: Instruction | None = None) -> int:
        """Return the number of a function, which will be translated too.

        A function of a toolkit's header, or without lines, is translated for each place that calls it, where accesses
        are judged: a reader looks for that place. Code without optimisation has such functions.
        """
        called = Called(name)
        may_be_placed = self.variant.checks and len(self.numbers) < _PLACED_MAX
        if call is not None and may_be_placed and self.is_told_by_caller(name) and self._uses_memory(name):
            called = Called(name, call.location, call.caller)
        return self.numbers.setdefault(called, len(self.numbers))

    def is_told_by_caller(self, name: str) -> bool:
        """Say whether a function has no lines but those of headers of a toolkit for device code."""
        if name not in self._told_by_caller:
            files = {i.location[0] for i in self.parse(name).instructions()} - {0}
            self._told_by_caller[name] = files <= self.module.toolkit_files
        return self._told_by_caller[name]

    def _uses_memory(self, name: str) -> bool:
        """Say whether a function, or one that it calls, uses memory that is not its own."""
        if name not in self._memory_users:
            self._memory_users[name] = False  # a function that calls itself: what it does otherwise decides
            text = self.module.functions.get(name)
            if text is not None and text.body is not None:
                self._memory_users[name] = any(map(self._is_use, self.parse(name).instructions()))
        return self._memory_users[name]

    def _is_use(self, i: Instruction) -> bool:
        callee = callee_of(i)
        if callee is not None:
            return self._uses_memory(callee)
        return i.opcode in _USES and _PRIVATE.isdisjoint(i.modifiers)

    def function_of(self, called: Called) -> Function:
        """Return a function that is called, parsed once; its lines may be that of its call."""
        function = self.parse(called.name)
        return placed(function, called.location, called.caller) if called.location[0] else function

    def variable_slot(self, variable: Variable) -> str:
        """Return the place that the loader writes the address of a variable to."""
        if variable.name not in self.variables:
            self.variables.append(variable.name)
        return f"@slot{self.variables.index(variable.name)}"

    def shared_offset(self, variable: Variable, owner: str = "") -> int | None:
        """Return where a shared variable lies in the block's memory; None for one that begins after all others."""
        key = f"{owner}/{variable.name}"
        if not variable.bytes:
            self._dynamic[key] = variable.alignment
            return None
        if key not in self._shared:
            require_memory(variable, SHARED_BYTES_MAX)
            self._shared[key] = -(-self.shared_bytes // variable.alignment) * variable.alignment
            self.shared_bytes = self._shared[key] + variable.bytes
        return self._shared[key]

    @property
    def dynamic_offset(self) -> int:
        """Return where shared memory begins whose size only the launch knows."""
        alignment = max([DYNAMIC_ALIGNMENT, *self._dynamic.values()])
        end = self.reserved_offset + RESERVED_BYTES if self.uses_reserved else self.shared_bytes
        return -(-end // alignment) * alignment

    @property
    def reserved_offset(self) -> int:
        """Return where the shared memory for cooperative groups begins, which no client is told of."""
        return -(-self.shared_bytes // DYNAMIC_ALIGNMENT) * DYNAMIC_ALIGNMENT

    @property
    def constant_bytes(self) -> int:
        """Return how much constant memory the kernel uses, of what the module declares."""
        used = (self.module.variables.get(name) for name in self.variables)
        return sum(each.bytes for each in used if each is not None and each.space == "const")

    def array_of(self, function: Function, instruction: Instruction) -> tuple[int, int] | None:
        """Return where the array lies that an access to shared memory begins at, and its size; None: not known."""
        if function.name not in self._origins:
            self._origins[function.name] = SharedArrays(function)
        name = self._origins[function.name].of(instruction)
        own = function.variables.get(name or "")
        variable = own or self.module.variables.get(name or "")
        if variable is None or variable.space != "shared" or not variable.bytes:
            return None
        offset = self.shared_offset(variable, function.name if own else "")
        assert offset is not None
        self.arrays.setdefault((offset, variable.bytes), variable.name.partition("@")[0])
        return offset, variable.bytes

    def add_site(self, instruction: Instruction, array: tuple[int, int] | None = None) -> int:
        """Note an access to memory and return its number."""
        number = list(self.arrays).index(array) + 1 if array else 0
        self.sites.append(Site(instruction.line, *instruction.location, instruction.text, instruction.caller, number))
        return len(self.sites) - 1
