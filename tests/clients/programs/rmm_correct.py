"""A buffer from RMM's pool."""

import rmm

rmm.reinitialize(pool_allocator=True, initial_pool_size=2**20)
buffer = rmm.DeviceBuffer.to_device(b"\7" * 4096)
assert buffer.tobytes() == b"\7" * 4096
del buffer
