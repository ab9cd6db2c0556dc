"""The backends that come with quiesce: one module or package each, imported only when it is chosen."""
