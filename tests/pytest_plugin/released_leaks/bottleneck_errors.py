"""pydata/bottleneck#572 and #520: what a call allocated stays where it raises an error."""

from __future__ import annotations

import bottleneck
import numpy
import pytest


@pytest.mark.leak
def test_nanargmin():
    assert bottleneck.nanargmin(numpy.ones((4, 4)), axis=1).tolist() == [0] * 4


@pytest.mark.leak
def test_nanargmin_of_an_all_nan_slice():
    with pytest.raises(ValueError, match="All-NaN"):
        bottleneck.nanargmin(numpy.full((4, 4), numpy.nan), axis=1)


@pytest.mark.leak
def test_partition():
    assert bottleneck.partition(numpy.zeros(1000), kth=1)[0] == 0


@pytest.mark.leak
def test_partition_out_of_bounds():
    with pytest.raises(ValueError, match="must be between"):
        bottleneck.partition(numpy.zeros(1000), kth=-1)
