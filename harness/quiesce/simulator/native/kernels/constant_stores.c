#include "kernels/constant_stores.h"

#include <string.h>

#include "kernels/checks.h"

enum { STORES_MAX = 64, BYTES_MAX = 32 };

static struct store {
    uint32_t site, bytes;
    bool varies, excuses;
    unsigned char value[BYTES_MAX];
    struct wrong_access race;  // that it excuses
} stores[STORES_MAX];
static uint32_t count;

void constant_stores_begin(void) { count = 0; }

static struct store *find(uint32_t site) {
    for (uint32_t i = 0; i < count; i++)
        if (stores[i].site == site) return &stores[i];
    return NULL;
}

void constant_stores_note(uint32_t site, uint64_t address, uint32_t bytes, bool was_looked_at) {
    struct store *store = find(site);
    if (!store && (count == STORES_MAX || bytes > BYTES_MAX)) return;
    if (!store) {
        store = &stores[count++];
        *store = (struct store){.site = site, .bytes = bytes};
        memcpy(store->value, (const void *)address, bytes);
    }
    if (!was_looked_at || store->bytes != bytes || memcmp(store->value, (const void *)address, bytes) != 0)
        store->varies = true;
}

bool constant_stores_excuse(uint32_t site, const struct wrong_access *race) {
    struct store *store = find(site);
    if (!store || store->varies) return false;
    if (!store->excuses) store->race = *race;
    store->excuses = true;
    return true;
}

void constant_stores_accuse(uint32_t site) {
    struct store *store = find(site);
    if (!store) return;
    if (store->excuses) checks_see(&store->race);
    store->varies = true;
    store->excuses = false;
}

void constant_stores_end(void) {
    for (uint32_t i = 0; i < count; i++)
        if (stores[i].excuses && stores[i].varies) checks_see(&stores[i].race);
    count = 0;
}
