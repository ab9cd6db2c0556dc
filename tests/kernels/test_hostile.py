"""Texts that are nearly PTX end in an object or in a refusal by name, in bounded time and memory.

The sample here is short. ``tox -e kernels-hostile`` compiles 100,000.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("llvmlite", reason="kernels are compiled by llvmlite: pip install 'quiesce[kernels]'")

from tests.kernels.compiling import translate_kernel
from tests.kernels.hostile import TEXT_SECONDS, is_compiled, originals
from tests.kernels.programs import HEADER
from tests.seeds import SEED

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.ptx.module import Module

COUNT = int(os.environ.get("QUIESCE_HOSTILE_TEXTS", "300"))
_ROOT = Path(__file__).parents[2]
_BATCH = 5000


@pytest.fixture(autouse=True)
def tuned() -> None:
    """Run each test once: texts are compiled in both ways in turn."""


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, COUNT, _BATCH))
def test_changed_kernels_become_objects_or_are_refused(start: int) -> None:
    count = min(_BATCH, COUNT - start)
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.hostile", str(SEED + start), str(count)],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(", 0 wrong\n")


def test_the_kernels_that_are_changed_are_whole() -> None:
    assert len(originals()) > 30
    assert all(map(is_compiled, originals()[:5]))


@pytest.mark.parametrize(
    "text",
    ["", "\0", "{" * 100_000, "}" * 1000, ".entry", ".visible .entry k(", "/*", '"', ".global .u32 a = {", "\x80\xff;"],
)
def test_texts_that_are_no_modules(text: str) -> None:
    with pytest.raises(RefusedKernel):
        translate_kernel(Module(text), "k")


@pytest.mark.parametrize(
    "text",
    ["/*" * 100_000, "{}" * 100_000, "{" + "/" * 200_000 + "\n}", "{" + '// "' * 50_000 + "}", "a /" * 100_000 + ";"],
    ids=["comments", "braces", "slashes", "texts", "words"],
)
def test_long_texts_take_no_time(text: str) -> None:
    started = time.process_time()
    with pytest.raises(RefusedKernel):
        translate_kernel(Module(f".visible .entry k()\n{{ {text}"), "k")
    with pytest.raises(RefusedKernel):
        translate_kernel(Module(text), "k")
    assert time.process_time() - started < TEXT_SECONDS


@pytest.mark.parametrize(
    "access", ["ld.global.u32 %r1, [%rd1]", "red.global.add.u32 [%rd1], 1", "st.shared.u32 [sh], 1"]
)
def test_many_accesses_do_not_make_many_blocks(access: str) -> None:
    """LLVM takes four times longer for twice as many blocks of one function: from some number on, checks are calls."""
    blocks = []
    for count in (1000, 2000):
        body = ".reg .b32 %r<2>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [a];\n" + f"{access};\n" * count
        text = f"{HEADER}.shared .align 4 .b8 sh[64];\n.entry k(.param .u64 a)\n{{\n{body}ret;\n}}\n"
        lines = translate_kernel(Module(text), "k", checks=True).splitlines()
        blocks.append(len([each for each in lines if each.endswith(":")]))
    assert blocks[0] == blocks[1] < 2500, "those of the checks up to a number, which are where the accesses are"
