#include "kernels/chains.h"

#include <string.h>

#include "kernels/checks.h"

static struct {
    uint64_t value;
    uint32_t thread, bytes;  // no bytes: it can be no index
    bool is_led;             // by the index that its thread read before
} last;

static struct {
    bool waits;
    struct wrong_access race;
} kept;

void chains_begin(void) {
    last.bytes = 0;
    kept.waits = false;
}

void chains_end(void) {
    if (kept.waits) checks_see(&kept.race);
    kept.waits = false;
}

void chains_read(const struct kernel_context *context, uint32_t thread, uint64_t address, uint32_t bytes) {
    bool is_index = bytes == sizeof(uint32_t) || bytes == sizeof(uint64_t);
    bool goes_on = is_index && last.bytes == bytes && last.thread == thread;
    last.is_led = goes_on && checks_is_argument(context, address - last.value * bytes);
    if (last.is_led) kept.waits = false;
    chains_end();
    last.value = 0;
    last.thread = thread;
    last.bytes = is_index ? bytes : 0;
    if (is_index) memcpy(&last.value, (const void *)address, bytes);
}

bool chains_accuse(uint32_t thread, uint64_t address) {
    if (!kept.waits || last.thread != thread || kept.race.address != address) return false;
    chains_end();
    return true;
}

bool chains_excuse(const struct wrong_access *race) {
    if (last.is_led || !last.bytes) return last.is_led;
    if (!kept.waits) kept.race = *race;
    kept.waits = true;
    return true;
}
