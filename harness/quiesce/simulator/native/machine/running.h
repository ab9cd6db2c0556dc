// Whether other processes of the run still run.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// False for one that has ended, also where its parent has not asked for its status yet.
bool process_is_running(uint32_t process);
