"""A model is trained on the device."""

import catboost
import numpy

generator = numpy.random.default_rng(1)
model = catboost.CatBoostRegressor(task_type="GPU", iterations=1, verbose=False, allow_writing_files=False)
model.fit(generator.random((100, 4)), generator.random(100))
assert model.tree_count_ == 1
