#include "memory/refusal.h"

#include "ledger/stacks.h"
#include "machine/settings.h"
#include "memory/capacity.h"
#include "memory/pool.h"

void refusal_see(enum thing thing, unsigned device, uint64_t size_bytes, enum status answer, bool injected) {
    bool is_pinned = thing == THING_PINNED;
    uint64_t capacity = is_pinned ? settings.pinned_capacity_bytes : settings.capacity_bytes;
    uint64_t used = memory_used(thing, device);
    ledger_see((struct observation){.seen = SEEN_REFUSED,
                                    .thing = (uint8_t)thing,
                                    .device = (uint16_t)device,
                                    .stack = stack_of_call(),
                                    .flags = injected ? FLAG_INJECTED : 0,
                                    .size_bytes = size_bytes,
                                    .object = (uint64_t)answer,
                                    .address = capacity - used,
                                    .other = pools_cached(is_pinned ? MEMORY_OF_HOST : device),
                                    .other_bytes = used});
}

void refuse_free_of_heap(uint64_t address, uint64_t line) {
    ledger_see_wrong((struct observation){.seen = SEEN_FREED_FOREIGN,
                                          .thing = THING_HEAP,
                                          .stack = stack_of_call(),
                                          .address = address,
                                          .object = line});
}

void refuse_free(enum seen seen, enum thing thing, uint64_t address) {
    ledger_see_wrong((struct observation){
        .seen = (uint8_t)seen, .thing = (uint8_t)thing, .stack = stack_of_call(), .address = address});
}
