// A graph as text that Graphviz draws.
#pragma once

#include <stdint.h>

#include "machine/status.h"

enum status graph_draw(uint64_t graph, const char *path);
