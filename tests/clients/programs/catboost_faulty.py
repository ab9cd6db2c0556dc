"""A block that the program takes next to CatBoost is lost."""

import ctypes

import catboost
import numpy

runtime = ctypes.CDLL("libcudart.so")
block = ctypes.c_void_p()
runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(4096))  # the fault
block = None
generator = numpy.random.default_rng(1)
model = catboost.CatBoostRegressor(task_type="GPU", iterations=1, verbose=False, allow_writing_files=False)
model.fit(generator.random((100, 4)), generator.random(100))
