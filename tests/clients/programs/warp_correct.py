"""Arrays and a copy of Warp."""

import numpy
import warp

warp.init()
array = warp.array(numpy.full(1000, 7, numpy.int32), device="cuda:0")
other = warp.empty(1000, dtype=warp.int32, device="cuda:0")
warp.copy(other, array)
assert (other.numpy() == 7).all()
