"""The table: for each function its parameters, as its header has them, and the operation that computes it.

A signature names the parameters in order, each after the letter of its type: ``p`` is a pointer, ``e`` an enumerator or
another ``int``, ``n`` a number of elements (``int``, and ``int64_t`` in a function that ends in ``_64``), ``l`` a
``long long``, ``z`` a ``size_t``, ``f`` a ``float`` and ``d`` a ``double``. ``a`` points to pointers, one for each
matrix of a batch. ``w`` is no parameter: memory that the library's handle was given before.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from quiesce.simulator.libraries.conversation import (
    FLOATS_AT,
    KEPT_BYTES,
    NAMES_BYTES,
    OPERANDS,
    WORDS,
    WORDS_AT,
    Array,
    Client,
    Heard,
    Said,
)

Work: TypeAlias = Callable[[], None] | None
"""What is left to do when the stream comes to a call; None: nothing."""
T = TypeVar("T")

_WORD: Final[Mapping[str, str]] = {"p": "Q", "a": "Q", "e": "i4x", "n": "i4x", "l": "q", "z": "Q"}
_FLOAT: Final[Mapping[str, str]] = {"f": "f4x", "d": "d"}
_WIDE: Final = "_64"
_IN_REGISTERS: Final = 6
HANDLES: Final = ("handle", "plan", "generator", "stream")
"""Parameters that are no operands: what a call belongs to."""


class Refused(Exception):
    """The library's own status for a call that is wrong."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class NotDescribed(Exception):
    """A call of a known function that nothing here computes; the text says which."""


class Abandoned(Exception):
    """Work that can't go on after an access that was wrong, which was observed."""


class Arguments:
    """The arguments of a call by the names in its signature."""

    def __init__(self, values: Mapping[str, int | float]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:  # for type checkers: every name is in the signature
        raise AttributeError(name)


@dataclass(frozen=True, slots=True)
class Row(Generic[T]):
    """A function. ``about`` is what tells it from others of its operation, such as the type of its elements."""

    name: str
    operation: Callable[[Call[T]], Work]
    signature: str
    about: T
    parameters: tuple[tuple[str, str], ...] = field(init=False)
    operands: tuple[str, ...] = field(init=False)
    _words: tuple[struct.Struct, tuple[str, ...]] = field(init=False)
    _floats: tuple[struct.Struct, tuple[str, ...]] = field(init=False)

    def __post_init__(self) -> None:
        parameters = tuple(
            (letter, name) for letter, _, name in (each.partition(":") for each in self.signature.split())
        )
        wide = self.name.endswith(_WIDE)
        words = [(letter, name) for letter, name in parameters if letter in _WORD]
        floats = [(letter, name) for letter, name in parameters if letter in _FLOAT]
        forms = "".join("q" if wide and letter == "n" else _WORD[letter] for letter, _ in words)
        operands = [name for letter, name in parameters if letter in "paw" and name not in HANDLES]
        operands = [name.replace("_", " ") for name in operands]
        operands += [f"array of pointers {name}" for letter, name in words if letter == "a"]
        assert len(words) <= WORDS
        assert len(operands) <= OPERANDS
        assert sum(len(each) + 1 for each in operands) < NAMES_BYTES
        set_ = object.__setattr__
        set_(self, "parameters", parameters)
        set_(self, "operands", tuple(operands))
        set_(self, "_words", (struct.Struct("<" + forms), tuple(name for _, name in words)))
        set_(
            self,
            "_floats",
            (struct.Struct("<" + "".join(_FLOAT[letter] for letter, _ in floats)), tuple(name for _, name in floats)),
        )

    @property
    def words(self) -> int:
        """How many words of a call are arguments."""
        return len(self._words[1])

    @property
    def names(self) -> bytes:
        """The names of its operands, each with a NUL behind."""
        return "".join(f"{name}\0" for name in self.operands).encode()

    def arguments(self, content: bytes) -> Arguments:
        """Return the arguments of a call, ``struct hosted_call``."""
        words, names = self._words
        floats, float_names = self._floats
        values = dict(zip(names, words.unpack_from(content, WORDS_AT), strict=True))
        values.update(zip(float_names, floats.unpack_from(content, FLOATS_AT), strict=True))
        return Arguments(values)


TABLE: Final[dict[str, Row[Any]]] = {}
"""All rows, by the function's name."""


def computes(
    names: Mapping[str, T], signature: str, *, wide: bool = False
) -> Callable[[Callable[[Call[T]], Work]], Callable[[Call[T]], Work]]:
    """Add a row for each name. ``wide``: also for the function with sizes of 64 bits.

    The operation is called twice, with the same arguments: when the function is called, so that it can refuse them and
    read what lies in the host's memory; and when the stream comes to the call, to do the work that it returns.
    """

    def add(operation: Callable[[Call[T]], Work]) -> Callable[[Call[T]], Work]:
        for name, about in names.items():
            for each in (name, name + _WIDE) if wide else (name,):
                assert each not in TABLE, each
                TABLE[each] = Row(each, operation, signature, about)
        return operation

    return add


class Call(Generic[T]):
    """One call: its arguments, and what it may do with memory. Operands are named as in the signature."""

    def __init__(self, client: Client, heard: Heard, row: Row[T], state: dict[int, Any]) -> None:
        self._client, self._row = client, row
        self.about = row.about
        self.arguments = row.arguments(heard.content)
        self.settings = heard.settings
        self.object = heard.object
        self.area = heard.area
        self.state = state
        """What operations remember of objects, by their serials. It may get lost at any time."""
        self.waits = False
        self._begins = heard.said is Said.BEGIN
        self._kept = bytearray(heard.kept)
        self._kept_at = 0

    @property
    def kept(self) -> bytes:
        """What was read of the host's memory so far."""
        return bytes(self._kept)

    def host(self, operand: str, address: int, dtype: DTypeLike, count: int = 1) -> Array:
        """Return elements of the host's memory, as they were when the function was called."""
        size_bytes = np.dtype(dtype).itemsize * count
        if self._begins:
            if len(self._kept) + size_bytes > KEPT_BYTES:
                raise NotDescribed("it reads more of the host's memory than is kept")
            self._kept += self._client.read_host(self._number(operand), address, size_bytes)
        at = self._kept_at
        self._kept_at += size_bytes
        return np.frombuffer(bytes(self._kept[at : self._kept_at]), dtype)

    def tell(self, content: bytes) -> None:
        """Note bytes for the function that was called, which gets them before the call is put on its stream."""
        if self._begins:
            self._kept += content
        self._kept_at += len(content)

    def read(self, operand: str, address: int, dtype: DTypeLike, count: int, rows: int = 1, pitch: int = 0) -> Array:
        """Return rows of elements of a device's memory."""
        return self._client.read(self._number(operand), address, dtype, count, rows, pitch)

    def reuse_memory(self) -> None:
        """Forget what was read so far, and room that was made: their memory is used again."""
        self._client.memory.begin()

    def read_pointers(self, operand: str, address: int, count: int) -> list[int]:
        """Return addresses that lie in a device's memory, one for each matrix of a batch."""
        read = self.read(f"array of pointers {operand}", address, np.uint64, count)[0]
        if self._client.was_wrong:
            raise Abandoned
        return [int(each) for each in read]

    def room(self, dtype: DTypeLike, *shape: int) -> Result:
        """Return room for what :meth:`write` writes."""
        return Result(*self._client.memory.take(dtype, *shape))

    def write(self, operand: str, address: int, values: Array | Result, pitch: int = 0) -> None:
        """Write rows of elements to a device's memory."""
        if not isinstance(values, Result):
            room = self.room(values.dtype, *values.shape)
            room.values[...] = values
            values = room
        array = values.values
        rows = array.shape[0] if array.ndim > 1 else 1
        self._client.write(self._number(operand), address, values.place, array.reshape(rows, -1), pitch)

    def gather(self, operand: str, address: int, dtype: DTypeLike, indices: Array) -> Array:
        """Return elements of a device's memory by their distances from an address, in elements."""
        return self._client.gather(self._number(operand), address, dtype, indices)

    def scatter(self, operand: str, address: int, values: Array, indices: Array) -> None:
        """Write elements to a device's memory by their distances from an address, in elements."""
        self._client.scatter(self._number(operand), address, values, indices)

    @property
    def was_wrong(self) -> bool:
        """Say whether some of the range that was read or written last was not there."""
        return self._client.was_wrong

    def use(self, operand: str, address: int, size_bytes: int) -> None:
        """Say that bytes are written whose values do not matter: a workspace."""
        self._client.use(self._number(operand), address, size_bytes)

    def give_to_host(self, operand: str, address: int, value: Array) -> None:
        """Write to the host's memory. :attr:`waits` has to be set when the function is called."""
        self._client.give_result(self._number(operand), address, value)

    def tell_host(self, operand: str, address: int, value: Array) -> None:
        """Write to the host's memory when the function is called, and not again when its stream comes to it."""
        if self._begins:
            self.give_to_host(operand, address, value)

    def _number(self, operand: str) -> int:
        return self._row.operands.index(operand)


@dataclass(frozen=True, slots=True)
class Result:
    """Room in the memory that the client has too."""

    place: int
    values: Array


def plain(names: Iterable[str]) -> dict[str, None]:
    """Return names of functions that nothing tells from others."""
    return dict.fromkeys(names)
