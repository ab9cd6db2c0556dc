// Which runtime a process has loaded, where the run was given no flavour.
#pragma once

#include "machine/settings.h"

// Chooses flavour and version by the look-alike of a runtime that is loaded, unless that of the settings is loaded as
// well, or a runtime is linked into the process. Not while a machine runs.
void loaded_runtime_follow(struct settings *settings);
