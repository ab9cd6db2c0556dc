"""Tests of the program: one is checked for leaks."""

import pytest
from train import step


def test_a_step_ends() -> None:
    step()


@pytest.mark.leak
def test_a_step_leaves_nothing() -> None:
    step()
