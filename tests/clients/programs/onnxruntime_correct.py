"""A value goes to the device and back."""

import numpy
import onnxruntime

value = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.full(1000, 7, numpy.float32), "cuda", 0)
assert value.device_name() == "cuda"
assert (value.numpy() == 7).all()
