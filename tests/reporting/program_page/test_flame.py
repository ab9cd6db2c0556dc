"""The flame graph: frames as wide as their bytes, callers above what they called."""

from __future__ import annotations

from quiesce.model.findings import CallSite, Frame
from quiesce.model.program_run import Holding, Holdings
from quiesce.reporting.program_page.holders import CELLS_MAX, Cell, Flame, make_flame


def holding(size_bytes: int, *frames: str, state: str = "held") -> Holding:
    """A block that was allocated below functions, the outermost first."""
    stack = tuple(Frame(name, "/src/train.py", 7) for name in reversed(frames))
    return Holding(state, "device memory", 0, 1, size_bytes, CallSite("allocated by", "cudaMalloc", 3, stack))


def flame(*holdings: Holding) -> Flame:
    made = make_flame(Holdings(holdings, len(holdings), sum(each.size_bytes for each in holdings), at_exit=True))
    assert made is not None
    return made


def placed(cells: tuple[Cell, ...]) -> list[tuple[str, int, float, float]]:
    return [(cell.label.split(" ")[0], cell.row, cell.x_percent, cell.width_percent) for cell in cells]


def test_a_caller_is_as_wide_as_all_that_it_called() -> None:
    made = flame(holding(30, "main", "load"), holding(60, "main", "step"), holding(10, "other"))
    assert placed(made.cells) == [
        ("all", 0, 0.0, 100.0),
        ("main", 1, 0.0, 90.0),
        ("step", 2, 0.0, 60.0),
        ("cudaMalloc:", 3, 0.0, 60.0),
        ("load", 2, 60.0, 30.0),
        ("cudaMalloc:", 3, 60.0, 30.0),
        ("other", 1, 90.0, 10.0),
        ("cudaMalloc:", 2, 90.0, 10.0),
    ]
    assert made.rows == 4
    assert made.cells[2].title == "step /src/train.py:7\n/src/train.py:7\n60 bytes in 1 block"


def test_what_is_lost_is_told_apart_from_what_is_held() -> None:
    cells = flame(holding(50, "main", state="lost"), holding(50, "main")).cells
    assert [(cell.label.split(" ")[0], cell.state) for cell in cells if cell.row == 1] == [
        ("held", "held"),
        ("lost", "lost"),
    ]
    assert {cell.state for cell in flame(holding(5, "main", state="lost")).cells} == {"lost"}


def test_handles_and_holdings_without_stacks_make_no_graph() -> None:
    assert make_flame(Holdings((holding(5), holding(0, "main")), 2, 5, at_exit=True)) is None


def test_what_is_too_narrow_or_too_much_is_counted() -> None:
    made = flame(holding(10_000, "wide"), holding(1, "narrow"))
    assert ([cell.label.split(" ")[0] for cell in made.cells], made.left_out) == (["all", "wide", "cudaMalloc:"], 1)
    many = flame(*(holding(10, f"f{number}", "g", "h", "i") for number in range(200)))
    assert (len(many.cells), many.left_out) == (CELLS_MAX, 1 + 200 * 5 - CELLS_MAX)


def test_plumbing_is_left_out() -> None:
    stack = (Frame("step", "train.py", 8), Frame("call", "python.py", 1, folded="pytest"), Frame("main", "train.py", 9))
    site = CallSite("allocated by", "cudaMalloc", 3, stack)
    cells = flame(Holding("held", "device memory", 0, 1, 64, site)).cells
    assert [cell.label.split(" ")[0] for cell in cells] == ["all", "main", "step", "cudaMalloc:"]
