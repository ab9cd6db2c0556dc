"""Two streams write one buffer, and nothing orders them."""

from cuda.core import Device

device = Device()
device.set_current()
first, second = device.create_stream(), device.create_stream()
buffer = device.allocate(4096, stream=first)
first.sync()
buffer.fill(1, stream=first)
buffer.fill(7, stream=second)  # the fault
device.sync()
