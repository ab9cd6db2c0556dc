"""A buffer, a stream and an event of cuda.core."""

from cuda.core import Device

device = Device()
device.set_current()
stream = device.create_stream()
buffer = device.allocate(4096, stream=stream)
buffer.fill(7, stream=stream)
stream.record().sync()
assert buffer.size == 4096
buffer.close(stream)
stream.sync()
