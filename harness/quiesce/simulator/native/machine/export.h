// What other libraries see of this one.
#pragma once

#define EXPORT __attribute__((visibility("default")))
