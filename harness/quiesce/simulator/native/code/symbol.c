#include "code/symbol.h"

#include <stdlib.h>
#include <string.h>

#include "code/registration.h"
#include "code/variable.h"
#include "machine/device.h"
#include "machine/settings.h"
#include "order/capture.h"

// Clients register as their libraries are loaded, and ask about few: a list is enough, the newest first. Entries are
// never taken back, for threads ask while libraries are loaded.
static struct symbol {
    struct symbol *next;
    struct registered_binary *binary;  // NULL: of none
    const char *name;
    const void *initial;  // the first value; NULL: the image has it
    uint64_t shadow, size_bytes;
    bool managed, constant, unclear;
    unsigned written;  // the devices on which it is clear all the same
    uint64_t addresses[DEVICES_MAX];  // 0: it is not there
} *symbols;

static unsigned long collected;  // up to which unregistered binary

static struct symbol *first(void) { return __atomic_load_n(&symbols, __ATOMIC_ACQUIRE); }

static void add(struct symbol symbol) {
    struct symbol *made = malloc(sizeof *made);
    if (!made) return;  // then what asks for it is refused
    symbol.next = symbols;
    *made = symbol;
    __atomic_store_n(&symbols, made, __ATOMIC_RELEASE);
}

void symbol_register(struct registered_binary *binary, uint64_t shadow, const char *name, uint64_t size_bytes,
                     bool is_constant) {
    add((struct symbol){
        .binary = binary, .name = name, .shadow = shadow, .size_bytes = size_bytes, .constant = is_constant});
}

void symbol_register_managed(struct registered_binary *binary, void **shadow, const char *name, uint64_t size_bytes,
                             const void *initial) {
    add((struct symbol){.binary = binary,
                        .name = name,
                        .initial = initial,
                        .shadow = (uint64_t)shadow,
                        .size_bytes = size_bytes,
                        .managed = true});
}

static bool is_there(const struct symbol *symbol) { return !symbol->binary || symbol->binary->fatbin; }

// A managed variable is named by its own address: a compiler puts that in the place of its shadow.
static struct symbol *find(uint64_t shadow) {
    for (struct symbol *each = first(); each && shadow; each = each->next)
        if (is_there(each) && (each->managed ? each->addresses[0] : each->shadow) == shadow) return each;
    return NULL;
}

// -- memory ----------------------------------------------------------------------------------------------------------

static enum thing thing_of(const struct symbol *symbol) { return symbol->managed ? THING_MANAGED : THING_DEVICE; }

static enum variable_space space_of(const struct symbol *symbol) {
    return symbol->managed ? VARIABLE_MANAGED : symbol->constant ? VARIABLE_CONSTANT : VARIABLE_GLOBAL;
}

static void remove_from(struct symbol *symbol, unsigned device) {
    if (!symbol->addresses[device]) return;
    variable_free(thing_of(symbol), symbol->addresses[device]);
    symbol->addresses[device] = 0;
    symbol->written &= ~(1u << device);
}

// Frees the variables of libraries that were unloaded. That is not done as they go: at exit an address that such a
// variable holds still counts as held.
static void collect(void) {
    unsigned long gone = binaries_unregistered();
    if (gone == collected) return;
    collected = gone;
    for (struct symbol *each = first(); each; each = each->next) {
        if (is_there(each)) continue;
        for (unsigned device = 0; device < DEVICES_MAX; device++) remove_from(each, device);
        variables_delete(each->binary->variables);
        each->binary->variables = NULL;
    }
}

// A variable that is used first in a capture is no allocation of the client's.
static enum status place(struct symbol *symbol, unsigned device) {
    if (symbol->addresses[device]) return OK;
    collect();
    const void *content = symbol->initial;
    if (symbol->binary && !content) {
        const struct variables *variables = binary_variables(symbol->binary);
        symbol->unclear = !variables_initial(variables, symbol->name, symbol->size_bytes, &content);
    }
    enum capture_mode mode = capture_exchange_mode(CAPTURE_RELAXED);
    uint64_t *address = &symbol->addresses[device];
    enum status status = variable_allocate(space_of(symbol), device, symbol->size_bytes, content, symbol->name,
                                           address);
    capture_exchange_mode(mode);
    // a kernel may be the first that uses it: the host finds it by this pointer, which the compiler wrote
    if (!status && symbol->managed) *(uint64_t *)symbol->shadow = *address;
    return status;
}

enum status symbols_manage(const struct registered_binary *binary, bool *unclear) {
    enum status status = OK;
    *unclear = false;
    for (struct symbol *each = first(); each && !status; each = each->next) {
        if (!each->managed || each->binary != binary) continue;
        status = place(each, 0);
        *unclear |= each->unclear;
    }
    return status;
}

// -- what clients ask ------------------------------------------------------------------------------------------------

uint64_t symbol_size(uint64_t shadow) {
    const struct symbol *symbol = find(shadow);
    return symbol ? symbol->size_bytes : 0;
}

enum status symbol_address(uint64_t shadow, uint64_t *address) {
    struct symbol *symbol = find(shadow);
    if (!symbol) return INVALID_SYMBOL;
    unsigned device = symbol->managed ? 0 : device_current();
    enum status status = place(symbol, device);
    *address = symbol->addresses[device];
    return status;
}

static struct symbol *named(const struct registered_binary *binary, const char *name) {
    struct symbol *symbol = first();
    while (symbol && (symbol->binary != binary || !symbol->name || strcmp(symbol->name, name))) symbol = symbol->next;
    return symbol;
}

static bool is_unclear(const struct symbol *symbol, unsigned device) {
    return symbol->unclear && !(symbol->written >> device & 1);
}

enum status symbol_of_binary(const struct registered_binary *binary, const char *name, unsigned device,
                             uint64_t *address) {
    struct symbol *symbol = named(binary, name);
    if (!symbol) return NOT_FOUND;
    if (symbol->managed) device = 0;
    enum status status = place(symbol, device);
    *address = symbol->addresses[device];
    return !status && is_unclear(symbol, device) ? NOT_SUPPORTED : status;
}

void symbol_of_binary_written(const struct registered_binary *binary, const char *name, unsigned device, bool written) {
    struct symbol *symbol = named(binary, name);
    if (!symbol) return;
    if (symbol->managed) device = 0;
    symbol->written &= ~(1u << device);
    symbol->written |= (unsigned)written << device;
}

static unsigned device_of(const struct symbol *symbol) { return symbol->managed ? 0 : device_current(); }

bool symbol_is_unclear(uint64_t shadow) {
    const struct symbol *symbol = find(shadow);
    return symbol && is_unclear(symbol, device_of(symbol));
}

struct registered_binary *symbol_binary(uint64_t shadow, const char **name) {
    const struct symbol *symbol = find(shadow);
    *name = symbol ? symbol->name : NULL;
    return symbol ? symbol->binary : NULL;
}

void symbol_write(uint64_t shadow) {
    struct symbol *symbol = find(shadow);
    if (symbol) symbol->written |= 1u << device_of(symbol);
}

// -- end -------------------------------------------------------------------------------------------------------------

// Managed variables stay, for their addresses are in the client's hands.
void symbols_reset(unsigned device) {
    for (struct symbol *each = first(); each; each = each->next)
        if (!each->managed) remove_from(each, device);
}

void symbols_close(void) {
    for (struct symbol *each = first(); each; each = each->next) memset(each->addresses, 0, sizeof each->addresses);
}
