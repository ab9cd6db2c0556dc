"""An executable graph outlives a node that it was made of: nothing keeps the buffer, NVIDIA/cuda-python#2357."""

from cuda.core import Device, DeviceMemoryResource, LaunchConfig, ObjectCode
from cuda.core.graph import GraphDefinition

PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry fill(.param .u64 to)
{
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [to];
st.global.u32 [%rd1], 7;
ret;
}
"""

device = Device()
device.set_current()
resource, stream = DeviceMemoryResource(device), device.create_stream()
kernel = ObjectCode.from_ptx(PTX).get_kernel("fill")
one, definition = LaunchConfig(grid=1, block=1), GraphDefinition()
node = definition.launch(one, kernel, resource.allocate(4096, stream=stream))  # the fault
stream.sync()
graph = definition.instantiate()
node.destroy()
definition.launch(one, kernel, resource.allocate(4096, stream=stream))
stream.sync()
graph.launch(stream)
stream.sync()
