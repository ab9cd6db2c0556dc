// The end of an object of a vendor's library, which a reset destroys, too: libraries/object.c has this function.
#pragma once

struct object;

void object_end(struct object *object);
