// Files of the system by which programs see that there is a device, before they load its driver.
#pragma once

#include <link.h>

// Let a C library that was just mapped answer that they are there, in a run of CUDA.
void device_files_follow(struct link_map *c_library);
