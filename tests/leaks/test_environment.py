"""What the C library keeps of the environment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from quiesce.leaks.meters.memory import EnvironmentTexts, HeapMeter

PROGRAM = """\
import os
from quiesce.leaks.meters.memory import HEAP, HeapMeter

meter = HeapMeter()
meter.read()
names = ["QUIESCE_" + "n" * (number % 7) for number in range(40)]
values = ["v" * number + str(number) for number in range(40)]
read = [0] * 40
for number in range(40):
    os.putenv(names[number], values[number])  # without the mapping, which grows now and then
    os.unsetenv(names[number])
    read[number] = meter.read()[HEAP]
meter.rest()
print(read[-1] - read[3])
"""


@pytest.mark.skipif(bool(HeapMeter().absent()), reason="this C library does not count its heap")
def test_ever_new_texts_of_the_environment_are_no_growth_of_the_heap() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert abs(int(done.stdout)) < 36  # rounds of each which would have added 64 bytes and more


def test_a_text_counts_once_and_only_while_it_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIESCE_TEXT", "before")
    untouched = os.putenv
    texts = EnvironmentTexts()
    texts.watch()
    texts.watch()
    monkeypatch.setenv("QUIESCE_TEXT", "one")
    once = texts.kept_bytes
    monkeypatch.setenv("QUIESCE_TEXT", "one")
    assert texts.kept_bytes == once == 32 + 32
    monkeypatch.setenv("QUIESCE_TEXT", "another and a longer one")
    assert texts.kept_bytes == once + 48 + 32
    texts.rest()
    texts.rest()
    assert os.putenv is untouched
    monkeypatch.setenv("QUIESCE_TEXT", "not watched")
    assert texts.kept_bytes == once + 48 + 32


def test_what_tested_code_put_in_the_place_of_putenv_stays_until_it_is_put_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def other(name: str, value: str) -> None: ...

    untouched = os.putenv
    texts = EnvironmentTexts()
    texts.watch()
    with monkeypatch.context() as patch:
        patch.setattr(os, "putenv", other)
        texts.rest()
        assert os.putenv is other
    monkeypatch.setenv("QUIESCE_TEXT", "it still works")
    assert texts.kept_bytes == 0
    texts.watch()
    texts.rest()
    assert os.putenv is untouched


ENLARGES = """\
import os, sys
from quiesce.leaks.meters.memory import enlarge_table

enlarge_table()
sizes = set()
for number in range(1000):
    os.environ["NAME"] = "value"
    del os.environ["NAME"]
    sizes.add(sys.getsizeof(os.environ._data))
print(*sizes)
"""


@pytest.mark.parametrize("names", [3, 40, 100])
def test_a_variable_that_comes_and_goes_makes_the_table_no_larger_any_more(names: int) -> None:
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), **{f"NAME_{number}": "" for number in range(names)}}
    done = subprocess.run([sys.executable, "-c", ENLARGES], capture_output=True, text=True, check=True, env=environment)
    assert len(done.stdout.split()) == 1
