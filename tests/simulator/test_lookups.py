"""Functions that a client looks for with dlsym in vain are noted, and nothing else changes for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from quiesce.simulator.runtime.failed_calls import Refusal, RefusalKind, read_refusals
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program

from .conftest import Compile

pytestmark = pytest.mark.usefixtures("library")

CLIENT: Final = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int puts(const char *text) {  // one of the program's own before the C library's
    int (*next)(const char *) = dlsym(RTLD_NEXT, "puts");
    return next == puts ? abort(), 0 : next(text);
}

int main(int count, char **names) {
    void *before = dlsym(RTLD_NEXT, "puts");
    void *driver = dlopen(names[1], RTLD_NOW);
    if (!driver || before == puts || dlsym(RTLD_NEXT, "puts") != before) abort();
    if (dlsym(RTLD_DEFAULT, "main") != main) abort();
    for (int i = 2; i < count; i++) {
        void *found = dlsym(driver, names[i]);
        char *error = dlerror();
        if (!found != !!error || (error && !strstr(error, names[i]))) abort();
        puts(found ? "found" : "missing");
    }
}
"""
FLAGS: Final = {
    "bound when it is called": ("-Wl,-z,lazy",),
    "bound at its start, and closed": ("-Wl,-z,now", "-Wl,-z,relro"),
    "without a linkage table": ("-fno-plt", "-Wl,-z,now", "-Wl,-z,relro"),
}


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize(
    ("flavour", "opened", "names", "missing"),
    [
        (
            "cuda:12",
            "libcuda.so.1",
            "cuInit cuInit_v2 cuCtxGetDevice_v2 cuNothing nothing",
            "cuCtxGetDevice_v2 cuNothing",
        ),
        ("hip:6", "libamdhip64.so.6", "hipInit hipInit_spt hipStreamGetId nothing", "hipStreamGetId"),
        ("cuda:12", "libm.so.6", "cuNothing cos", ""),
    ],
)
def test_names_that_are_nowhere_are_noted_with_who_asked(
    flavour: str,
    opened: str,
    names: str,
    missing: str,
    flags: tuple[str, ...],
    compile_c: Compile,
    capfd: pytest.CaptureFixture[str],
) -> None:
    program = compile_c("client", CLIENT, "-rdynamic", "-ldl", *flags)
    words = [str(program), opened, *names.split()]
    with run_program(words, MachineSettings(parse_flavour(flavour)), os.environ) as ended:
        assert ended.status == 0
        noted = [refusal for path in ended.refused for refusal in read_refusals(path)]
    asked_by = str(program.resolve())
    assert noted == [Refusal(RefusalKind.MISSING, name, 500, asked_by) for name in missing.split()]
    assert capfd.readouterr().out.split().count("found") == 1


def test_a_client_that_gives_the_gpu_up_is_told_what_it_did_not_find(tmp_path: Path) -> None:
    code = "import ctypes; print(hasattr(ctypes.CDLL('libcuda.so.1'), 'cuCtxGetDevice_v2'))"
    words = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", "cuda:12", "--", sys.executable, "-c", code]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout.startswith("False\n")
    assert (
        "it looked for cuCtxGetDevice_v2 in vain, which cuda:12 (release 12.9) does not have. Run it with"
        in done.stdout
    )
    assert "--flavour cuda:13, which has cuCtxGetDevice_v2" in done.stdout
    assert not list(tmp_path.iterdir()), "nothing is written where the program runs"
