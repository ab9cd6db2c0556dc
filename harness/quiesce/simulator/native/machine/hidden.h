// The library itself keeps handles and addresses that are to be found only where a client keeps them.
#pragma once

#define HIDDEN(number) (~(number))
