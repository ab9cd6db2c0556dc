"""The device trains the same model as the processor."""

import catboost
import numpy

values = numpy.random.default_rng(1).random((100, 4))
options = {"bootstrap_type": "No", "boosting_type": "Plain", "border_count": 128, "depth": 2, "random_strength": 0}
found = []
for kind in ("GPU", "CPU"):
    model = catboost.CatBoostRegressor(
        task_type=kind, iterations=2, verbose=False, allow_writing_files=False, **options
    )
    model.fit(values, values[:, 0])
    found.append(model.predict(values))
assert numpy.allclose(*found)
