"""What a graph allocates for an array outlives both the array and the graph, NVIDIA/warp#1429."""

import warp as wp

wp.init()
with wp.ScopedDevice("cuda:0"):
    for _ in range(3):
        with wp.ScopedCapture() as capture:
            array = wp.empty(1 << 20, dtype=wp.uint8)  # the fault
        wp.capture_launch(capture.graph)
        wp.capture_launch(capture.graph)
        wp.synchronize()
        del array, capture
