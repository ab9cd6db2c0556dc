// The launch of an executable graph: its nodes go onto a stream, or into the graph that is being captured there.
#pragma once

#include <stdint.h>

#include "machine/status.h"

struct stream;

enum status graph_launch(uint64_t executable, struct stream *stream);
