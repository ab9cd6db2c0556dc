// Pieces of work are made and deleted, with what they refer to.
#pragma once

#include "order/work.h"

// Returns a copy (the bytes that were staged included), or NULL.
struct work *work_new(const struct work *work);
void work_delete(struct work *work);
void nodes_delete(struct nodes *nodes);

struct point *point_new(struct stream *stream);
struct point *point_keep(struct point *point);
void point_drop(struct point *point);
