"""A graph that allocates and frees three times, one after the other, needs memory for one, NVIDIA/warp#1157."""

import warp as wp

GIB = 1 << 30


def allocate_and_free():
    wp.empty(GIB, dtype=wp.uint8)


wp.init()
device = wp.get_device("cuda:0")
with wp.ScopedDevice(device):
    wp.empty(1)
    before = device.free_memory
    with wp.ScopedCapture() as capture:
        for _ in range(3):
            allocate_and_free()
    wp.capture_launch(capture.graph)
    taken = before - device.free_memory
assert taken == GIB, f"the graph takes {taken / GIB:g} GiB"
