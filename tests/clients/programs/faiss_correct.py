"""Vectors go to an index on the device and back."""

import faiss
import numpy

vectors = numpy.random.default_rng(1).random((100, 8), numpy.float32)
resources = faiss.StandardGpuResources()
index = faiss.GpuIndexFlatL2(resources, 8)
index.add(vectors)
assert index.ntotal == 100
index.reset()
