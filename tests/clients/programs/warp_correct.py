"""Arrays, a copy and a kernel of Warp."""

import numpy
import warp


@warp.kernel
def add_index(target: warp.array(dtype=warp.int32)):  # type: ignore[valid-type]
    i = warp.tid()
    target[i] = target[i] + i


warp.init()
array = warp.array(numpy.full(1000, 7, numpy.int32), device="cuda:0")
other = warp.empty(1000, dtype=warp.int32, device="cuda:0")
warp.copy(other, array)
assert (other.numpy() == 7).all()
warp.launch(add_index, 1000, inputs=[other], device="cuda:0")
assert (other.numpy() == 7 + numpy.arange(1000)).all()
