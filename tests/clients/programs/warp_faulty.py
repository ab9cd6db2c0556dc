"""Two streams write one array, and nothing orders them."""

import warp

warp.init()
first, second = warp.Stream("cuda:0"), warp.Stream("cuda:0")
array = warp.empty(1000, dtype=warp.int32, device="cuda:0")
source = warp.empty(1000, dtype=warp.int32, device="cuda:0")
warp.synchronize()
warp.copy(array, source, stream=first)
warp.copy(array, source, stream=second)  # the fault
warp.synchronize()
