// What a device does by itself: it comes to a host function also where nobody calls, for a program may wait for one on
// a condition of its own. A schedule that lets work wait for somebody ends that wait once no call came for a while.
#pragma once

struct point;

// Says that a host function is the last thing before a point, whose reference becomes the callee's.
void progress_expect(struct point *point);
