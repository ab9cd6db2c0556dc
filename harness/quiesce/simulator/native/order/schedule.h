// What the runtime's own threads ask of the schedule: stream.c has it, which hands them their work.
#pragma once

#include "machine/status.h"

struct point;

// Runs what the schedule lets run; every call that enqueues something ends with it.
void stream_settle(void);

// Lets work run until a point is passed. NOT_PERMITTED: this thread would wait for itself.
enum status stream_force(struct point *point);
