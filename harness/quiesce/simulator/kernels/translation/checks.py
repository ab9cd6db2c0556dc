"""Accesses that are judged while a kernel runs.

The runtime has a bit for each byte of a device's memory, which is set where every use is right: memory that is
allocated, was written, and belongs to that device. An access whose bits are all set goes on at once. Any other asks
the runtime, which answers with the place to use instead: the same one, or nobody's memory where the access is wrong.
``native/memory/shadow.h`` and ``native/kernels/checks.h`` have the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from quiesce.simulator.kernels.ptx.function import Function, Instruction, Variable
from quiesce.simulator.kernels.translation.access_recording import (
    can_be_noted,
    is_ordered,
    is_unnoted,
    kinds_of_use,
    note_use,
    was_noted,
)
from quiesce.simulator.kernels.translation.accesses import Access, Judged
from quiesce.simulator.kernels.translation.emitter import Around, Emitter
from quiesce.simulator.kernels.translation.instructions.forms import refuse
from quiesce.simulator.kernels.translation.llvm_code import (
    SHARED_BASE,
    SHARED_BYTES,
    CalledShape,
    StateShape,
)
from quiesce.simulator.kernels.translation.program import Program

CHECKS: Final = 64
"""Where the context has the address of the bits."""
MEMORY_BYTES: Final = 0xE41AD401000
"""How many addresses from :attr:`Variant.memory_base` on have bits; the first byte of them is never in use."""
CONSTANTS_OFFSET: Final = 0xA0000001000
CONSTANTS_BYTES: Final = 1 << 40
"""Which of them are constant memory. A write there is never right, whatever its bits say."""
_BYTES: Final = (1, 2, 4, 8, 16, 32)
_ASK: Final = "quiesce_kernel_check"
_PAIRS: Final = frozenset(["acquire", "release", "acq_rel"])
"""Words of accesses by which one thread tells another one that what it did before is done."""
_LOCAL_VARIABLES_MAX: Final = 8
_INLINED_MAX: Final = 256
"""So many checks are written where the access is. The others are calls: LLVM takes four times longer for twice as many
blocks in one function."""


class _CheckShape(CalledShape):
    """A function that judges accesses of one kind."""


def checked(
    e: Emitter, i: Instruction, place: Callable[[], str], access: Access, stored: Sequence[tuple[str, str]] = ()
) -> str:
    """Return a pointer to the memory that an access is to use, which ``place`` writes.

    ``stored`` are types and values of a store. Whether two threads store the same to shared memory is seen there: each
    has to have stored before the next one is judged, also where a row of threads is.
    """
    if access.bytes not in _BYTES:
        raise refuse(i, f"an access of {access.bytes} bytes can't be checked")
    if e.position in e.around.judged_before:
        return place()
    judged = Judged(
        access,
        kinds_of_use(e.function, i, access.kind),
        access.space in ("shared", "generic") and e.program.shared_use.is_judged and not is_ordered(i),
        e.program.array_of(e.function, i) if access.space == "shared" else None,
    )
    site = e.program.add_site(i, judged.array)
    if access.space != "local" and (site >= _INLINED_MAX or e.around.calls_checks):
        by_itself = access.space == "shared" and judged.may_race
        return _judge_by_call(e, judged, place(), site, stored if by_itself else ())
    return _judge(e, judged, place(), str(site))


def _judge_by_call(e: Emitter, judged: Judged, pointer: str, site: int, stored: Sequence[tuple[str, str]]) -> str:
    judged = replace(judged, stored=tuple(type_ for type_, _ in stored))
    number = e.program.checks_called.setdefault(judged, len(e.program.checks_called))
    place = (f"ptr {pointer}", f"i32 {site}", f"i32 {e.shape.linear(e)}", f"ptr {_frame(e)}")
    arguments = (*place, *(f"{type_} {value}" for type_, value in stored))
    return e.define(f"call ptr @check{number}(ptr %context, {', '.join(arguments)})")


def called_checks(program: Program, function: Function) -> list[str]:
    """Return the functions that judge accesses for texts that have many."""
    lines = []
    for judged, number in program.checks_called.items():
        e = Emitter(program, function, Around(_CheckShape()))
        e.place("entry")
        answer = _judge(e, judged, "%pointer", "%site")
        values = [f"{type_} %value{place}" for place, type_ in enumerate(judged.stored)]
        for place, type_ in enumerate(judged.stored):
            size_bytes = judged.access.bytes // len(judged.stored)
            e.store(type_, f"%value{place}", e.byte_offset(answer, size_bytes * place), "align 1")
        parameters = ("ptr %context", "ptr %pointer", "i32 %site", "i32 %linear", "ptr %frame", *values)
        lines += [
            f"define internal ptr @check{number}({', '.join(parameters)}) noinline nounwind null_pointer_is_valid {{",
            *e.lines,
            f"ret ptr {answer}",
            "}",
        ]
    return lines


def _judge(e: Emitter, judged: Judged, pointer: str, site: str) -> str:
    """Return the pointer, or what the runtime says where the access is wrong."""
    access = judged.access
    address = e.define(f"ptrtoint ptr {pointer} to i64")
    if access.space == "shared":
        return _judge_shared(e, judged, pointer, address, site)
    if access.space == "local":
        return _checked_local(e, pointer, address, access, site)
    within = place_of_bits(e, address)
    wrong = is_unknown(e, within, address, access.bytes)
    if access.kind != "atomic":
        return _judge_memory(e, judged, (pointer, address, within, wrong), site)
    # Many atomic operations use one place, and the processor lets each wait for the stores before it: none is best.
    before, first, last, done = (e.new_label() for _ in range(4))
    noted = was_noted(e, within, address, access.bytes, judged.kinds)
    is_first = e.define(f"or i1 {wrong}, {e.define(f'xor i1 {noted}, true')}")
    e.emit(f"br label %{before}")
    e.place(before)
    e.emit(f"br i1 {is_first}, label %{first}, label %{done}")
    e.place(first)
    answer = _judge_memory(e, judged, (pointer, address, within, wrong), site)
    e.emit(f"br label %{last}")
    e.place(last)
    e.emit(f"br label %{done}")
    e.place(done)
    return e.define(f"phi ptr [{pointer}, %{before}], [{answer}, %{last}]")


def _judge_shared(e: Emitter, judged: Judged, pointer: str, address: str, site: str) -> str:
    access = judged.access
    offset, wrong = place_in_shared(e, judged, address)

    def ask() -> str:
        return _unless(e, wrong, pointer, lambda: _ask(e, address, access.number(), site))

    if not judged.may_race:
        return ask()
    arguments = [f"i64 {address}", f"i32 {access.number()}", f"i32 {site}", f"i32 {e.shape.linear(e)}"]

    def tell() -> str:
        e.call("void", "quiesce_kernel_shared", "ptr %context", *arguments, attributes="nounwind")
        return ask()

    if not can_be_noted(access):
        return tell()
    return _unless(e, is_unnoted(e, access, wrong, offset, site), pointer, tell)


def place_in_shared(e: Emitter, judged: Judged, address: str) -> tuple[str, str]:
    """Return where in shared memory an access begins, and whether it is outside of what it may use, or misaligned."""
    base = e.define(f"ptrtoint ptr {e.shape.context(e, SHARED_BASE, 'ptr')} to i64")
    offset = e.define(f"sub i64 {address}, {base}")
    return offset, _is_outside_shared(e, offset, address, judged)


def _judge_memory(e: Emitter, judged: Judged, place: tuple[str, str, str, str], site: str) -> str:
    access, (pointer, address, within, wrong) = judged.access, place
    if access.kind != "load":
        wrong = e.define(f"or i1 {wrong}, {is_constant(e, address)}")
    is_first = note_use(e, within, address, access.bytes, judged.kinds)
    wrong = e.define(f"or i1 {wrong}, {is_first}")
    return _unless(e, wrong, pointer, lambda: _ask(e, address, access.number(judged.kinds), site, asked(judged)))


def asked(judged: Judged) -> str:
    """Return the runtime's function that judges an access to memory."""
    return "quiesce_kernel_check_any" if judged.may_race else _ASK


def is_judged_as_range(e: Emitter, i: Instruction, access: Access) -> bool:
    """Say whether an access may be judged before a loop over all threads that make it."""
    if access.space == "local" or access.bytes not in _BYTES or is_ordered(i):
        return False
    return access.space != "shared" or (e.program.shared_use.is_judged and not e.program.shared_use.has_copies)


def orders_by_other_means(function: Function) -> bool:
    """Say whether threads wait for each other by other means than barriers of the whole block and their warp."""
    for each in function.instructions():
        if each.opcode in ("mbarrier", "fence", "membar") or (each.opcode == "cp" and not is_copy_by_groups(each)):
            return True
        if not _PAIRS.isdisjoint(each.modifiers) and "global" not in each.modifiers:
            return True
        if each.opcode in ("bar", "barrier") and "warp" not in each.modifiers and _is_partial(each):
            return True
    return False


def is_copy_by_groups(i: Instruction) -> bool:
    """Say whether an instruction has to do with asynchronous copies that their own thread waits for."""
    return i.opcode == "cp" and "async" in i.modifiers and {"bulk", "mbarrier"}.isdisjoint(i.modifiers)


def _is_partial(i: Instruction) -> bool:
    return "arrive" in i.modifiers or len(i.operands) == (4 if "red" in i.modifiers else 2)


def place_of_bits(e: Emitter, address: str) -> str:
    """Return in which byte the first bit of an access is."""
    within = e.define(f"lshr i64 {e.define(f'sub i64 {address}, {e.program.variant.memory_base}')}, 3")
    known = e.define(f"icmp ult i64 {within}, {MEMORY_BYTES // 8}")
    return e.select(known, "i64", within, "0")


def is_constant(e: Emitter, address: str) -> str:
    """Say whether an access begins in constant memory."""
    within = e.define(f"sub i64 {address}, {e.program.variant.memory_base + CONSTANTS_OFFSET}")
    return e.define(f"icmp ult i64 {within}, {CONSTANTS_BYTES}")


def is_unknown(e: Emitter, within: str, address: str, bytes_: int) -> str:
    """Say whether not all bits of an access are set, or its address is misaligned."""
    shadow = e.shape.context(e, CHECKS, "ptr")
    bits = max(8, bytes_)
    found = e.load(f"i{bits}", e.byte_offset(shadow, within), "align 1")
    if bytes_ >= 8:
        missing = e.define(f"icmp ne i{bits} {found}, -1")
    else:
        shift = e.cast(e.define(f"and i64 {address}, 7"), 64, 8)
        mask = (1 << bytes_) - 1
        wanted = e.define(f"and i8 {e.define(f'lshr i8 {found}, {shift}')}, {mask}")
        missing = e.define(f"icmp ne i8 {wanted}, {mask}")
    return _or_misaligned(e, missing, address, bytes_)


def _or_misaligned(e: Emitter, wrong: str, address: str, bytes_: int) -> str:
    if bytes_ == 1:
        return wrong
    odd = e.define(f"icmp ne i64 {e.define(f'and i64 {address}, {bytes_ - 1}')}, 0")
    return e.define(f"or i1 {wrong}, {odd}")


def _is_outside_shared(e: Emitter, offset: str, address: str, judged: Judged) -> str:
    bytes_ = judged.access.bytes
    if judged.array is None:
        whole = e.cast(e.shape.context(e, SHARED_BYTES, "i32"), 32, 64)
    else:
        offset, whole = e.define(f"sub i64 {offset}, {judged.array[0]}"), str(judged.array[1])
    return _or_misaligned(e, _is_outside(e, offset, whole, bytes_), address, bytes_)


def _is_outside(e: Emitter, offset: str, whole: str, bytes_: int) -> str:
    """Say whether bytes from an offset on do not lie in so many; an offset that is negative is large."""
    end = e.define(f"add i64 {offset}, {bytes_}")
    begins = e.define(f"icmp uge i64 {offset}, {whole}")
    return e.define(f"or i1 {begins}, {e.define(f'icmp ugt i64 {end}, {whole}')}")


def _checked_local(e: Emitter, pointer: str, address: str, access: Access, site: str) -> str:
    """Return a pointer for an access to local memory; it is not judged where it may be in arrays of a caller."""
    variables = [each for each in e.function.variables.values() if each.space == "local"]
    if not e.function.is_entry or not 0 < len(variables) <= _LOCAL_VARIABLES_MAX:
        return pointer
    offsets = [e.define(f"sub i64 {address}, {_start(e, each)}") for each in variables]
    wrong = "true"
    for each, offset in zip(variables, offsets, strict=True):
        outside = _is_outside(e, offset, str(each.bytes), access.bytes)
        wrong = outside if wrong == "true" else e.define(f"and i1 {wrong}, {outside}")

    def ask() -> str:
        """Ask with the array that the access is nearest to."""
        start, bytes_ = _start(e, variables[0]), str(variables[0].bytes)
        nearest = _distance(e, offsets[0], variables[0].bytes)
        for each, offset in zip(variables[1:], offsets[1:], strict=True):
            distance = _distance(e, offset, each.bytes)
            is_nearer = e.define(f"icmp ult i64 {distance}, {nearest}")
            start = e.select(is_nearer, "i64", _start(e, each), start)
            bytes_ = e.select(is_nearer, "i64", str(each.bytes), bytes_)
            nearest = e.select(is_nearer, "i64", distance, nearest)
        numbers = [f"i64 {address}", f"i32 {access.number()}", f"i32 {site}", f"i32 {e.shape.linear(e)}"]
        array = [f"i64 {start}", f"i64 {bytes_}"]
        return e.call(
            "ptr", "quiesce_kernel_outside_local", "ptr %context", *numbers, *array, attributes="cold nounwind"
        )

    return _unless(e, wrong, pointer, ask)


def _start(e: Emitter, variable: Variable) -> str:
    return e.define(f"ptrtoint ptr {e.memory[variable.name]} to i64")


def _distance(e: Emitter, offset: str, bytes_: int) -> str:
    """Return how many bytes an offset lies before an array or after its last byte."""
    before = e.define(f"sub i64 0, {offset}")
    after = e.define(f"sub i64 {offset}, {bytes_ - 1}")
    return e.select(e.define(f"icmp slt i64 {offset}, 0"), "i64", before, after)


def _unless(e: Emitter, wrong: str, pointer: str, ask: Callable[[], str]) -> str:
    """Return the pointer, or what the runtime says where it has to be asked."""
    before, asked, answered, done = (e.new_label() for _ in range(4))
    e.emit(f"br label %{before}")
    e.place(before)
    e.emit(f"br i1 {wrong}, label %{asked}, label %{done}, !prof !7")
    e.place(asked)
    answer = ask()
    e.emit(f"br label %{answered}")
    e.place(answered)
    e.emit(f"br label %{done}")
    e.place(done)
    return e.define(f"phi ptr [{pointer}, %{before}], [{answer}, %{answered}]")


def _frame(e: Emitter) -> str:
    if isinstance(e.shape, _CheckShape):
        return "%frame"
    return "%thread" if isinstance(e.shape, StateShape) else "null"


def _ask(e: Emitter, address: str, access: int, site: str, function: str = _ASK) -> str:
    return e.call("ptr", function, *_question(e, address, access, site), attributes="cold nounwind")


def _question(e: Emitter, address: str, access: int, site: str) -> list[str]:
    numbers = [f"i32 {access}", f"i32 {site}", f"i32 {e.shape.linear(e)}", f"ptr {_frame(e)}"]
    return ["ptr %context", f"i64 {address}", *numbers]


def checked_copy(e: Emitter, i: Instruction, pointer: str, access: Access, size_bytes: str) -> str:
    """Return a pointer for one side of a copy of any length, of which each access has a part."""
    site = e.program.add_site(i)
    address = e.define(f"ptrtoint ptr {pointer} to i64")
    arguments = [*_question(e, address, access.number(), str(site)), f"i64 {size_bytes}"]
    return e.call("ptr", "quiesce_kernel_check_copy", *arguments, attributes="nounwind")
