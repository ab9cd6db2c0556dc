"""What the variables of tested code hold: a set of small numbers, or a text that is replaced by a longer one.

These grow without a block of Python's allocator, until a table or a size class is full. So the lengths are added up of
what modules and their classes hold directly, and of the attributes of their instances. That is quick, for only modules
of tested code are looked at.
"""

from __future__ import annotations

import array
import io
import sys
import types
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import compress
from operator import mul
from typing import Any, Final

from quiesce.leaks.explaining.paths import attributes_of
from quiesce.leaks.meters.contents import held_by_stream
from quiesce.leaks.owners import Owners
from quiesce.leaks.quantities import PYTHON, BaseMeter, Quantity

IN_VARIABLES: Final = Quantity(PYTHON, "Python's memory in variables")

REFERENCE_BYTES: Final = 8

_UNITS: Final[Mapping[type, int]] = {
    dict: 2 * REFERENCE_BYTES,
    defaultdict: 2 * REFERENCE_BYTES,
    OrderedDict: 2 * REFERENCE_BYTES,
    set: REFERENCE_BYTES,
    frozenset: REFERENCE_BYTES,
    tuple: REFERENCE_BYTES,
    bytearray: 1,
    bytes: 1,
    str: 1,
}
"""How many bytes each entry takes at least. Lists are counted by themselves, wherever they are."""

_DIGIT_BITS: Final = sys.int_info.bits_per_digit

_SIZES: Final[Mapping[type, Callable[[Any], int]]] = {
    int: lambda number: number.bit_length() // _DIGIT_BITS * sys.int_info.sizeof_digit,
    array.array: lambda numbers: len(numbers) * numbers.itemsize,
    io.BytesIO: held_by_stream,
    io.StringIO: held_by_stream,
}
"""Returns how many bytes the entries take at least, of what does not hold a fixed number of bytes for each."""

_COUNTED: Final = frozenset({*_UNITS, *_SIZES})

_REPLACED: Final = frozenset({str, bytes, tuple, frozenset, int})

NAMES_MAX: Final = 64
"""A dictionary of texts with no more entries holds state by names; one with more is a table."""


class VariableMeter(BaseMeter):
    """Adds up what the variables of the modules of tested code hold. Modules that are imported later count as well."""

    family = PYTHON

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._tested: dict[str, bool] = {}
        self._names: tuple[str, ...] = ()  # of all modules, when those that are tested were picked out
        self._tested_names: tuple[str, ...] = ()
        self._places: dict[str, tuple[int, tuple[str, ...], tuple[str, ...]]] = {}

    def read(self) -> Mapping[Quantity, int]:
        """Add up."""
        return {IN_VARIABLES: self.held_bytes()}

    def held_bytes(self) -> int:
        """Return what the variables hold together."""
        values = self._values()
        counted = tuple(compress(values, map(_COUNTED.__contains__, map(type, values))))
        kinds = tuple(map(type, counted))
        in_units = tuple(map(_UNITS.get, kinds))
        held: int = sum(map(mul, map(len, compress(counted, in_units)), filter(None, in_units)))
        others = compress(counted, map(_SIZES.__contains__, kinds))
        return held + sum(_SIZES[type(each)](each) for each in others)

    def _values(self) -> list[Any]:
        """Return the values of all variables; without their names, which take longer to put together."""
        values: list[Any] = []
        for name, variables in self._modules():
            own, within = self._places_in(name, variables)
            if own:
                values.extend(map(variables.get, own))
            for key in within:
                values.extend(_attributes(variables.get(key)).values())
        return values

    def replaced(self) -> dict[str, int]:
        """Return how long each value is that can only be replaced by a longer one, by the name of its variable."""
        return {
            f"{place} ({type(value).__name__})": _SIZES.get(type(value), len)(value)
            for place, value in self._named()
            if type(value) in _REPLACED
        }

    def _named(self) -> Iterator[tuple[str, Any]]:
        """Yield the variables of modules, and of their classes, instances and dictionaries, with their names."""
        for name, variables in self._modules():
            own, within = self._places_in(name, variables)
            yield from ((f"{name}.{key}", variables.get(key)) for key in own)
            for key in within:
                holder = variables.get(key)
                form = "{}.{}[{!r}]" if type(holder) is dict else "{}.{}.{}"
                yield from ((form.format(name, key, inner), each) for inner, each in tuple(_attributes(holder).items()))

    def _modules(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name and the variables of each module of tested code."""
        if (names := tuple(sys.modules)) != self._names:
            self._names, self._tested_names = names, tuple(filter(self._is_tested, names))
        for name in self._tested_names:
            module = sys.modules.get(name)
            if type(module) is types.ModuleType:
                yield name, vars(module)

    def _places_in(self, name: str, variables: dict[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return which variables of a module are looked at, and within which; looked up anew where it has others."""
        size, own, within = self._places.get(name, (-1, (), ()))
        if size != len(variables):
            items = tuple(variables.items())
            own = tuple(key for key, value in items if type(value) in _COUNTED and not key.startswith("__"))
            within = tuple(
                key
                for key, value in items
                if (_is_of(value, name) or (type(value) is dict and not key.startswith("__")))
                and _has_places(_attributes(value))
            )
            self._places[name] = len(variables), own, within
        return own, within

    def _is_tested(self, name: str) -> bool:
        module = sys.modules.get(name)
        if name not in self._tested and type(module) is types.ModuleType:
            file = vars(module).get("__file__")
            self._tested[name] = isinstance(file, str) and self._owners.is_tested(file)
        return self._tested.get(name, False)


def _is_of(value: Any, module: str) -> bool:
    """Whether a value is a class of the module, or an instance of one."""
    return (value if isinstance(value, type) else type(value)).__module__ == module


def _attributes(value: Any) -> Mapping[str, Any]:
    """Return the variables of a class or an instance, and what a dictionary holds by names."""
    if type(value) is dict:
        return value if len(value) <= NAMES_MAX and all(type(key) is str for key in value) else {}
    found = vars(value) if isinstance(value, type) else attributes_of(value)
    return found if isinstance(found, dict | types.MappingProxyType) else {}


def _has_places(namespace: Mapping[str, Any]) -> bool:
    return any(type(value) in _COUNTED and not key.startswith("__") for key, value in tuple(namespace.items()))
