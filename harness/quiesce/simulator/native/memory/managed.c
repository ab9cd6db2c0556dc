#include "memory/managed.h"

#include "machine/device.h"
#include "machine/settings.h"
#include "memory/places.h"

static enum status find_place(uint64_t word, bool is_structure) {
    enum { PLACE_INVALID, PLACE_DEVICE_NUMBER, PLACES = 5 };
    int first = (int)(uint32_t)word, second = (int)(uint32_t)(word >> 32);
    if (!is_structure) return first == -1 || device_exists(first) ? OK : INVALID_DEVICE;
    if (first <= PLACE_INVALID || first >= PLACES) return INVALID_VALUE;
    return first != PLACE_DEVICE_NUMBER || device_exists(second) ? OK : INVALID_DEVICE;
}

static enum status check(uint64_t address, uint64_t size_bytes) {
    struct span span = memory_find(address);
    bool managed = span.thing == THING_MANAGED && !span.dead && size_bytes;
    return managed ? memory_check(address, size_bytes) : INVALID_VALUE;
}

enum status managed_advise(uint64_t address, uint64_t size_bytes, int advice, uint64_t place, bool is_structure) {
    enum { READ_MOSTLY = 1, PREFERRED_LOCATION = 3, ACCESSED_BY = 5, NOT_ACCESSED_BY, COARSE_GRAIN = 100, FINE_GRAIN };
    bool is_hip = settings.flavour == FLAVOUR_HIP;
    bool known = (advice >= READ_MOSTLY && advice <= NOT_ACCESSED_BY) ||
                 (is_hip && (advice == COARSE_GRAIN || advice == FINE_GRAIN));
    if (!known) return INVALID_VALUE;
    bool names_a_place = advice == PREFERRED_LOCATION || advice == ACCESSED_BY || advice == NOT_ACCESSED_BY;
    enum status status = names_a_place ? find_place(place, is_structure) : OK;  // "ignored" by the others
    return status ? status : check(address, size_bytes);
}

enum status managed_prefetch(uint64_t address, uint64_t size_bytes, uint64_t place, bool is_structure) {
    enum status status = find_place(place, is_structure);
    return status ? status : check(address, size_bytes);
}
