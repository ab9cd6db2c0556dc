"""What a graph allocates, it frees as well: nothing outlives it."""

import warp as wp

wp.init()
with wp.ScopedDevice("cuda:0"):
    for _ in range(3):
        with wp.ScopedCapture() as capture:
            array = wp.empty(1 << 20, dtype=wp.uint8)
            del array
        wp.capture_launch(capture.graph)
        wp.capture_launch(capture.graph)
        wp.synchronize()
        del capture
