// What a device does by itself: it comes to a host function also where nobody calls, for a program may wait for one on
// a condition of its own. A schedule that lets work wait for somebody ends that wait once no call came for a while.
#pragma once

struct stream;

// Says that a host function is the last thing on a stream.
void progress_expect(struct stream *stream);
