"""Values go to the device and back."""

import ctranslate2
import numpy

assert ctranslate2.get_cuda_device_count() == 1
values = ctranslate2.StorageView.from_array(numpy.full(1000, 7, numpy.int32)).to_device(ctranslate2.Device.cuda)
assert (numpy.array(values.to_device(ctranslate2.Device.cpu)) == 7).all()
