"""Which backends a run uses: those asked for, which must work, or every one that works here and is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quiesce.backends.registry import Unusable, backend_names, probe_backend, probe_unnamed, refused
from quiesce.model.errors import BackendUnavailable, ConfigurationError
from quiesce.pytest_plugin.keys import SELECTION, SETTINGS, Selection
from quiesce.pytest_plugin.worker_devices import keep_to_own_device
from quiesce.reporting import clean_line

if TYPE_CHECKING:
    from quiesce.model.backend import Backend


def chosen(config: pytest.Config) -> Selection:
    """Return the backends of this run; they are loaded and described once.

    Raises :class:`pytest.UsageError` with one line where a backend that was asked for cannot work.
    """
    if SELECTION not in config.stash:
        keep_to_own_device(config)
        config.stash[SELECTION] = _choose(config)
    return config.stash[SELECTION]


def _choose(config: pytest.Config) -> Selection:
    settings = config.stash[SETTINGS]
    backends: dict[str, Backend] = {}
    unavailable: dict[str, Unusable] = {}
    for name in settings.backends or backend_names():
        try:
            probed = probe_backend(name) if settings.backends is not None else probe_unnamed(name)
        except ConfigurationError as error:
            if settings.backends is not None:
                raise pytest.UsageError(f"{settings.backends_from}: {clean_line(str(error))}") from None
            probed = refused(name, error)
        if isinstance(probed, Unusable):
            if settings.backends is not None:
                said = clean_line(str(BackendUnavailable(name, probed.reason, probed.remedy)))
                raise pytest.UsageError(f"{settings.backends_from}: {said}")
            unavailable[name] = probed
        else:
            backends[name] = config.hook.pytest_quiesce_backend(name=name, backend=probed.backend) or probed.backend
    return Selection(backends, unavailable)
