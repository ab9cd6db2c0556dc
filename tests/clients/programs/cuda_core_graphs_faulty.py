"""A graph whose kernel is the only user of a buffer: nothing keeps the buffer for it, NVIDIA/cuda-python#2041."""

from cuda.core import Device, DeviceMemoryResource, LaunchConfig, ObjectCode, graph

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
# 1.0.0 has given it another name
definition = graph.GraphDef() if hasattr(graph, "GraphDef") else graph.GraphDefinition()
one = LaunchConfig(grid=1, block=1)
definition.launch(one, kernel, resource.allocate(4096, stream=stream))  # the fault
stream.sync()
definition.instantiate().launch(stream)
stream.sync()
