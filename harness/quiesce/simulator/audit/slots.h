// The places of an object that hold addresses, as the dynamic loader will relocate them.
#pragma once

#include "texts.h"

// Enter those places that will hold the address of one of the texts; 0 where they are too many.
int slots_collect(texts *into, const object *of);
