"""The page of ``quiesce exec``, as frozen values of clean text. The templates only lay these values out."""
