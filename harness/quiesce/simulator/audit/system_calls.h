// Functions of the C library that hand memory of a program to the system, or install its handlers: the runtime may
// follow them.
#pragma once

#include <link.h>

// Let a C library that was just mapped be bound by way of this module where it defines such functions.
void system_calls_follow(struct link_map *c_library);

// Tell the runtime, which was just mapped, where these functions lead.
void system_calls_tell(struct link_map *simulator);
