"""A graph whose kernel uses a buffer that the program keeps until the graph has run."""

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
buffer = resource.allocate(4096, stream=stream)
definition.launch(one, kernel, buffer)
stream.sync()
definition.instantiate().launch(stream)
stream.sync()
