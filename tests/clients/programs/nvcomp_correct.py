"""An array goes to the device and back."""

import numpy
from nvidia import nvcomp

array = nvcomp.as_array(numpy.full(4096, 7, numpy.uint8)).cuda()
assert (numpy.asarray(array.cpu()) == 7).all()
