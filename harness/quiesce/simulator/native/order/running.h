// What a piece of work does when a stream comes to it.
#pragma once

#include <stdbool.h>

#include "order/work.h"

// Whether nothing holds it back but its place in the queue.
bool work_is_ready(const struct work *work);

// Whether it is something that a device takes time for. A point is passed when the work before it is complete.
bool work_takes_time(const struct work *work);

void running_open(void);  // nothing was told yet

// A stream comes to a point. It counts as work: on a device no two events have the same time.
void point_pass(struct point *point);

// Does what can be done under the lock: copies, fills, frees, points.
void work_run(struct work *work);
