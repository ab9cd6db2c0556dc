// Handles: what a client holds of a stream, an event, a graph. An address that nothing is mapped at, so that a client
// which looks inside fails at once. A handle that was destroyed may be handed out again at once, or never.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ledger/ledger.h"

// Makes a handle and an entry of the live table, whose serial goes to *serial. Returns 0 where there is no room.
uint64_t handle_make(enum thing thing, void *object, unsigned device, uint64_t *serial, bool nonblocking);

// What a handle stands for, or NULL; a handle of such a thing that was destroyed is observed.
void *handle_find(enum thing thing, uint64_t handle);

// Takes a handle out of the live table: it is the runtime's own, and nobody has to give it back. handle_own() makes it
// the client's again, by the call that is under way; false: the table is full.
void handle_disown(uint64_t handle);
bool handle_own(uint64_t handle, unsigned device);

// Ends a handle, whose number is handed out again as the settings say.
void handle_drop(uint64_t handle);

// The entry of the live table that belongs to a handle, or 0: it is dead, or the runtime's own.
uint32_t handle_live_at(uint64_t handle);
bool handle_covers(uint64_t number);  // whether it may be one

// A handle in half of its bits, never 0, and back.
uint32_t handle_number(uint64_t handle);
uint64_t handle_numbered(uint32_t number);

// The handles that exist: the first one above `after` (0: the first), or 0.
uint64_t handle_next(uint64_t after, enum thing *thing);

// A handle as the integer that a client holds instead (cufftHandle is an int), and back: 0 for an integer that is none.
// It is no small number, so that the search of reach.h takes few others for it, and has less than 30 bits, as a digit
// of Python's integers.
#define HANDLE_INTEGERS 0x2c5f1000u
uint32_t handle_integer(uint64_t handle);
uint64_t handle_of_integer(uint32_t integer);

void handles_close(void);
