"""Two streams write one buffer, and nothing orders them."""

import rmm
from rmm.pylibrmm.stream import Stream

first, second = Stream(), Stream()
source = rmm.DeviceBuffer(size=4096)
buffer = rmm.DeviceBuffer(size=4096)
rmm.pylibrmm.stream.DEFAULT_STREAM.synchronize()
buffer.copy_from_device(source, stream=first)
buffer.copy_from_device(source, stream=second)  # the fault
