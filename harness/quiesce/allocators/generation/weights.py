"""Which actions a sequence draws from, and how often: a theme, a swarm and the backend's capabilities decide.

A *theme* weights the actions so that some deep state is likely. The *swarm* switches actions off for a whole sequence
(Groce et al. 2012): what never happens lets other things pile up. Outside and inside a capture the tables differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from quiesce.allocators.generation import (
    actions_deep,
    actions_exhaustion,
    actions_hostile,
    actions_memory,
    actions_order,
    actions_races,
    actions_runtime,
)
from quiesce.allocators.generation.writer import Writer
from quiesce.model.backend import Capability, Promise

ActionFunction: TypeAlias = Callable[[Writer, int, int, int], None]
Table: TypeAlias = tuple[ActionFunction, ...]

OPCODES: Final = 256
"""A record's first byte chooses its action; 0 is a record that does nothing."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action: what a backend has to claim for it, and its weight in every theme and in its own."""

    function: ActionFunction
    needs: frozenset[Capability | Promise]
    theme: str
    weight: int
    own_weight: int
    in_capture: bool = False
    keeps: bool = False
    """Whether the swarm leaves it on: without it a sequence goes nowhere."""
    unless: frozenset[Capability] = frozenset()
    """The capabilities that make it needless."""


def _action(
    function: ActionFunction,
    theme: str,
    weights: tuple[int, int],
    *needs: Capability | Promise,
    capture: bool = False,
    keeps: bool = False,
    unless: frozenset[Capability] = frozenset(),
) -> Action:
    return Action(function, frozenset(needs), theme, *weights, in_capture=capture, keeps=keeps, unless=unless)


_C = Capability
_ORDER_TOLD: Final = frozenset({_C.ORDER_LEDGER})
_HOLDS_DEFAULT: Final = (_C.MEMORY, _C.STREAMS, _C.STALL, _C.EVENTS, _C.LAUNCH)
_RUNS_GRAPHS: Final = (_C.MEMORY, _C.STREAMS, _C.CAPTURE, _C.LAUNCH)
_D, _M, _O, _P, _R, _U = actions_deep, actions_memory, actions_order, actions_exhaustion, actions_runtime, actions_races

LEGAL_ACTIONS: Final = (
    _action(_M.allocate, "memory", (24, 24), _C.MEMORY, capture=True, keeps=True),
    _action(_M.free, "memory", (22, 22), _C.MEMORY, capture=True, keeps=True),
    _action(_M.allocate_burst, "memory", (2, 6), _C.MEMORY),
    _action(_M.free_alternate, "memory", (1, 4), _C.MEMORY),
    _action(_M.free_all, "memory", (1, 3), _C.MEMORY),
    _action(_M.free_part, "memory", (0, 2), _C.MEMORY),
    _action(_M.allocate_aligned, "memory", (1, 8), _C.MEMORY, _C.ALIGNMENT, capture=True),
    _action(_M.trim, "memory", (3, 8), _C.POOL),
    _action(_M.create_pool, "pools", (1, 6), _C.MEMORY, _C.POOLS),
    _action(_M.destroy_pool, "pools", (1, 4), _C.MEMORY, _C.POOLS),
    _action(_P.abandon_pool, "pools", (1, 4), _C.MEMORY, _C.POOLS, _C.STREAMS),
    _action(_P.inject_failure, "failures", (1, 10), _C.MEMORY, _C.INJECTION),
    _action(_P.exhaust, "pressure", (1, 10), _C.MEMORY),
    _action(_P.churn, "pressure", (1, 10), _C.MEMORY),
    _action(_P.align_large, "pressure", (1, 6), _C.MEMORY, _C.ALIGNMENT),
    _action(_P.trim_beside_flight, "flight", (1, 8), _C.MEMORY, _C.POOL, _C.STREAMS),
    _action(_P.ask_again, "pressure", (0, 10), _C.MEMORY),
    _action(_D.free_in_flight, "flight", (2, 12), _C.MEMORY, _C.STREAMS),
    _action(_U.hand_over, "flight", (6, 24), _C.MEMORY, _C.STREAMS, _C.STALL, unless=_ORDER_TOLD),
    _action(_U.hand_over_of_default, "flight", (3, 12), *_HOLDS_DEFAULT, unless=_ORDER_TOLD),
    _action(_U.hand_over_of_any_origin, "flight", (2, 8), _C.MEMORY, _C.STREAMS, _C.STALL, _C.LAUNCH),
    _action(_D.free_on_default, "flight", (1, 8), _C.MEMORY, _C.STREAMS),
    _action(_D.reshape, "flight", (1, 12), _C.MEMORY, _C.STREAMS),
    _action(_D.replace_stream, "flight", (1, 6), _C.MEMORY, _C.STREAMS),
    _action(_D.settle_partly, "flight", (2, 10), _C.MEMORY, _C.STREAMS),
    _action(_D.wait_too_early, "flight", (1, 8), _C.MEMORY, _C.STREAMS, _C.EVENTS, _C.LAUNCH),
    _action(_M.allocate_pinned, "host", (2, 14), _C.PINNED, capture=True),
    _action(_M.allocate_pageable, "host", (1, 6), _C.PAGEABLE),
    _action(_M.allocate_managed, "host", (1, 8), _C.MANAGED, capture=True),
    _action(_M.stage, "host", (2, 12), _C.STAGING),
    _action(_D.stage_on_brief_stream, "host", (1, 6), _C.STAGING, _C.STREAMS),
    _action(_M.copy, "host", (3, 8), _C.MEMORY, _C.COPY, capture=True),
    _action(_M.fill, "order", (3, 4), _C.FILL, capture=True),
    _action(_M.launch, "order", (10, 16), _C.LAUNCH, capture=True),
    _action(_O.create_stream, "order", (4, 8), _C.STREAMS),
    _action(_O.destroy_stream, "order", (2, 4), _C.STREAMS),
    _action(_O.synchronize_stream, "order", (2, 3), _C.STREAMS),
    _action(_O.synchronize_device, "order", (1, 2), _C.STREAMS),
    _action(_O.query_stream, "order", (3, 8), _C.STREAMS),
    _action(_O.stall, "order", (4, 12), _C.STREAMS, _C.STALL),
    _action(_O.release, "order", (2, 4), _C.STREAMS, _C.STALL),
    _action(_O.create_event, "events", (1, 3), _C.EVENTS),
    _action(_O.destroy_event, "events", (1, 4), _C.EVENTS),
    _action(_O.record_event, "events", (3, 10), _C.EVENTS, capture=True),
    _action(_O.wait_event, "events", (2, 8), _C.STREAMS, _C.EVENTS, capture=True),
    _action(_O.query_event, "events", (2, 10), _C.EVENTS),
    _action(_O.synchronize_event, "events", (1, 4), _C.EVENTS),
    _action(_O.merge, "events", (2, 8), _C.STREAMS, _C.EVENTS, _C.LAUNCH),
    _action(_O.begin_capture, "capture", (2, 24), _C.STREAMS, _C.CAPTURE),
    _action(_O.end_capture, "capture", (0, 0), _C.STREAMS, _C.CAPTURE, capture=True, keeps=True),
    _action(_O.fork_capture, "capture", (0, 0), _C.STREAMS, _C.EVENTS, _C.CAPTURE, capture=True),
    _action(_O.launch_graph, "capture", (2, 14), _C.STREAMS, _C.CAPTURE),
    _action(_O.destroy_graph, "capture", (1, 4), _C.CAPTURE, capture=True),
    _action(_D.run_graph_twice, "capture", (1, 12), *_RUNS_GRAPHS),
    _action(_O.select_device, "devices", (2, 20), _C.DEVICES),
    _action(_O.work_from_afar, "devices", (1, 14), _C.MEMORY, _C.STREAMS, _C.DEVICES),
    _action(_R.initialize, "runtime", (1, 10), _C.LIFECYCLE),
    _action(_R.finalize, "runtime", (1, 6), _C.LIFECYCLE),
    _action(_R.create_policy, "runtime", (1, 10), _C.LIFECYCLE),
    _action(_R.partition, "runtime", (1, 8), _C.LIFECYCLE, _C.INSTANCES),
    _action(_R.create_instance, "runtime", (1, 12), _C.INSTANCES),
    _action(_R.destroy_instance, "runtime", (1, 8), _C.INSTANCES),
    _action(_R.launch_instance, "runtime", (2, 30), _C.LAUNCH, _C.INSTANCES, capture=True),
    _action(_O.create_stream, "runtime", (0, 8), _C.STREAMS, _C.INSTANCES),
    _action(_O.destroy_stream, "runtime", (0, 10), _C.STREAMS, _C.INSTANCES),
    _action(_R.add_node, "tape", (2, 60), _C.TAPE, capture=True),
    _action(_R.hold, "tape", (1, 12), _C.TAPE),
    _action(_R.drop, "tape", (1, 50), _C.TAPE),
    _action(_R.backward, "tape", (1, 24), _C.TAPE),
    _action(_R.collect, "tape", (1, 12), _C.TAPE),
    _action(
        _D.fill_pool_in_capture, "capture", (1, 6), *_RUNS_GRAPHS, _C.POOL, _C.POOLS, Promise.ALLOCATES_IN_CAPTURES
    ),
    _action(_D.run_on_own_memory, "capture", (1, 14), *_RUNS_GRAPHS, Promise.KEEPS_GRAPH_MEMORY),
    _action(_D.reuse_on_forks, "capture", (1, 10), *_RUNS_GRAPHS, _C.EVENTS, Promise.KEEPS_GRAPH_MEMORY),
    _action(_P.fail_runtime, "runtime", (1, 10), _C.LAUNCH, _C.INSTANCES, _C.INJECTION),
    _action(_R.work_on_instance, "runtime", (1, 12), _C.MEMORY, _C.STREAMS, _C.LAUNCH, _C.INSTANCES),
)

_H = actions_hostile

HOSTILE_ACTIONS: Final = (
    _action(_H.double_free, "memory", (4, 6), _C.MEMORY, capture=True),
    _action(_H.use_after_free, "memory", (2, 3), _C.MEMORY),
    _action(_H.foreign_pointer, "memory", (2, 3), _C.MEMORY, capture=True),
    _action(_H.zero_size, "memory", (3, 4), _C.MEMORY),
    _action(_H.huge_size, "memory", (4, 6), _C.MEMORY),
    _action(_H.copy_too_long, "host", (2, 4), _C.COPY),
    _action(_H.stage_device_memory, "host", (1, 4), _C.STAGING),
    _action(_H.free_on_dead_stream, "order", (2, 4), _C.STREAMS),
    _action(_H.dead_stream, "order", (3, 6), _C.STREAMS),
    _action(_H.orphan_blocks, "flight", (1, 6), _C.MEMORY, _C.STREAMS),
    _action(_H.misuse_event, "events", (1, 6), _C.STREAMS, _C.EVENTS),
    _action(_H.misuse_pool, "pools", (2, 8), _C.MEMORY, _C.POOLS),
    _action(_H.misuse_device, "devices", (1, 8), _C.DEVICES, _C.EVENTS),
    _action(_H.misuse_capture, "capture", (0, 0), _C.STREAMS, _C.CAPTURE, capture=True),
    _action(_H.misuse_captured_event, "capture", (2, 10), _C.EVENTS, _C.CAPTURE),
    _action(_H.misuse_runtime, "runtime", (1, 12), _C.LIFECYCLE, _C.INSTANCES),
    _action(_H.misuse_tape, "tape", (1, 12), _C.TAPE),
    _action(_D.lose_capture, "capture", (1, 6), *_RUNS_GRAPHS, Promise.ALLOCATES_IN_CAPTURES),
)

ACTIONS: Final = (*LEGAL_ACTIONS, *HOSTILE_ACTIONS)

CAPTURE_WEIGHTS: Final[Mapping[ActionFunction, int]] = {
    _M.allocate: 8,
    _M.allocate_aligned: 1,
    _M.free: 18,
    _M.allocate_pinned: 3,
    _M.allocate_managed: 1,
    _M.copy: 6,
    _M.fill: 6,
    _M.launch: 24,
    _O.record_event: 6,
    _O.wait_event: 3,
    _O.fork_capture: 14,
    _O.destroy_graph: 2,
    _O.end_capture: 14,
    _R.launch_instance: 8,
    _R.add_node: 1,
    _H.double_free: 1,
    _H.foreign_pointer: 1,
    _H.misuse_capture: 16,
}
"""Weights while a capture is going on; other actions have to wait for its end."""

THEMES: Final = ("", *dict.fromkeys(action.theme for action in LEGAL_ACTIONS))
"""The themes; the empty one weights nothing in particular."""
FOREIGN_THEME_DIVISOR: Final = 3
"""In a theme of its own, a sequence draws less from the other themes' actions."""


def actions_for(claims: frozenset[Capability | Promise], *, hostile: bool) -> tuple[Action, ...]:
    """Return the actions that a backend with these capabilities and promises can follow."""
    actions = ACTIONS if hostile else LEGAL_ACTIONS
    return tuple(action for action in actions if action.needs <= claims and not action.unless & claims)


def themes_for(actions: tuple[Action, ...]) -> tuple[str, ...]:
    """Return the themes that have an action among ``actions``."""
    present = {action.theme for action in actions}
    return tuple(theme for theme in THEMES if not theme or theme in present)


def tables(actions: tuple[Action, ...], theme: str, switched_off: int) -> tuple[Table, Table]:
    """Return the tables from opcode to action outside and inside a capture.

    Bit n of ``switched_off`` takes the n-th action out, unless nothing works without it.
    """
    outside: list[tuple[ActionFunction, int]] = []
    inside: list[tuple[ActionFunction, int]] = []
    for position, action in enumerate(actions):
        if switched_off >> position & 1 and not action.keeps and action.theme != theme:
            continue
        if action.in_capture and action.function in CAPTURE_WEIGHTS:
            inside.append((action.function, CAPTURE_WEIGHTS[action.function]))
        weight = action.own_weight * 2 if action.theme == theme else action.weight * 2
        if theme and action.theme != theme:
            weight = -(-weight // FOREIGN_THEME_DIVISOR) if action.weight else 0
        outside.append((action.function, weight))
    return _spread(outside), _spread(inside)


def _spread(weighted: list[tuple[ActionFunction, int]]) -> Table:
    """Return the actions over all opcodes but 0, each as often as its weight says and at least once."""
    shares = [(function, weight) for function, weight in weighted if weight]
    if not shares:
        return ()
    total, places = sum(weight for _, weight in shares), OPCODES - 1
    counts = [max(1, weight * places // total) for _, weight in shares]
    # What is over goes to whom rounding took most from, what is too much comes from those who have most.
    remainders = sorted(range(len(shares)), key=lambda each: (-(shares[each][1] * places % total), each))
    for each in remainders[: max(0, places - sum(counts))]:
        counts[each] += 1
    while sum(counts) > places:
        counts[counts.index(max(counts))] -= 1
    return tuple(function for (function, _), count in zip(shares, counts, strict=True) for _ in range(count))
