#include "order/system_calls.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "machine/c_library.h"
#include "machine/settings.h"
#include "order/guard.h"

enum { ARGUMENTS = 6 };

// How a call names its memory: by an address and a size; by an address, the size of an item and how many there are; by
// a vector; by a message, or several.
enum form { BYTES, ITEMS, VECTOR, MESSAGE, MESSAGES };

#define WRITES "a write of the host in "
#define READS "a read of the host in "
// What it is called, what it does to the memory, and the places of the arguments that say where the memory lies and how
// much there is.
#define ALL(row)                                     \
    row(read, WRITES "read", BYTES, 1, 2)            \
    row(pread, WRITES "pread", BYTES, 1, 2)          \
    row(pread64, WRITES "pread", BYTES, 1, 2)        \
    row(readv, WRITES "readv", VECTOR, 1, 2)         \
    row(preadv, WRITES "preadv", VECTOR, 1, 2)       \
    row(preadv64, WRITES "preadv", VECTOR, 1, 2)     \
    row(preadv2, WRITES "preadv2", VECTOR, 1, 2)     \
    row(preadv64v2, WRITES "preadv2", VECTOR, 1, 2)  \
    row(recv, WRITES "recv", BYTES, 1, 2)            \
    row(recvfrom, WRITES "recvfrom", BYTES, 1, 2)    \
    row(recvmsg, WRITES "recvmsg", MESSAGE, 1, 0)    \
    row(recvmmsg, WRITES "recvmmsg", MESSAGES, 1, 2) \
    row(getrandom, WRITES "getrandom", BYTES, 0, 1)  \
    row(fread, WRITES "fread", ITEMS, 0, 1)          \
    row(fread_unlocked, WRITES "fread", ITEMS, 0, 1) \
    row(write, READS "write", BYTES, 1, 2)           \
    row(pwrite, READS "pwrite", BYTES, 1, 2)         \
    row(pwrite64, READS "pwrite", BYTES, 1, 2)       \
    row(writev, READS "writev", VECTOR, 1, 2)        \
    row(pwritev, READS "pwritev", VECTOR, 1, 2)      \
    row(pwritev64, READS "pwritev", VECTOR, 1, 2)    \
    row(pwritev2, READS "pwritev2", VECTOR, 1, 2)    \
    row(pwritev64v2, READS "pwritev2", VECTOR, 1, 2) \
    row(send, READS "send", BYTES, 1, 2)             \
    row(sendto, READS "sendto", BYTES, 1, 2)         \
    row(sendmsg, READS "sendmsg", MESSAGE, 1, 0)     \
    row(sendmmsg, READS "sendmmsg", MESSAGES, 1, 2)  \
    row(fwrite, READS "fwrite", ITEMS, 0, 1)         \
    row(fwrite_unlocked, READS "fwrite", ITEMS, 0, 1)

#define NUMBER(name, access, form, memory, size) CALL_##name,
enum { ALL(NUMBER) CALLS };

#define ROW(name, access, form, memory, size) {#name, access, form, memory, size},
static const struct call {
    const char *name, *access;
    enum form form;
    unsigned memory, size;
} calls[] = {ALL(ROW)};

typedef long function(long, long, long, long, long, long);
static function *originals[CALLS];

static bool writes(const struct call *call) { return call->access[2] == WRITES[2]; }

// -- what a call uses ------------------------------------------------------------------------------------------------

// One that has not returned yet may use all that it was given, by which it is then known.
struct use {
    const struct call *call;
    bool is_over, is_any;
};

static void see(struct use *use, uint64_t start, uint64_t size_bytes) {
    if (use->is_over)
        guard_used(start, size_bytes, writes(use->call), use->call->access);
    else
        use->is_any |= guard_lift(start, size_bytes);
}

// A wrong address is left to the system, which answers it.
static bool copy(void *to, uint64_t from, uint64_t size_bytes) {
    struct iovec local = {to, size_bytes}, remote = {(void *)from, size_bytes};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size_bytes;
}

static void see_vector(struct use *use, uint64_t vector, uint64_t count, uint64_t used_bytes) {
    struct iovec each;
    for (; count && used_bytes && copy(&each, vector, sizeof each); count--, vector += sizeof each) {
        uint64_t size_bytes = each.iov_len < used_bytes ? each.iov_len : used_bytes;
        see(use, (uint64_t)each.iov_base, size_bytes);
        used_bytes -= size_bytes;
    }
}

static void see_messages(struct use *use, uint64_t messages, uint64_t count) {
    struct mmsghdr each;
    for (; count && copy(&each, messages, sizeof each); count--, messages += sizeof each) {
        uint64_t used_bytes = use->is_over ? each.msg_len : UINT64_MAX;
        see_vector(use, (uint64_t)each.msg_hdr.msg_iov, each.msg_hdr.msg_iovlen, used_bytes);
    }
}

// `used`: what the call returned, or the most that there can be.
static void see_all(struct use *use, const long *given, uint64_t used) {
    const struct call *call = use->call;
    uint64_t memory = (uint64_t)given[call->memory], size = (uint64_t)given[call->size], size_bytes = size;
    struct msghdr message;
    switch (call->form) {
        case ITEMS:
            if (!size || __builtin_mul_overflow(size, given[call->size + 1], &size_bytes)) return;
            if (use->is_over) used *= size;
            // fall through
        case BYTES: see(use, memory, size_bytes < used ? size_bytes : used); break;
        case VECTOR: see_vector(use, memory, size, used); break;
        case MESSAGE:
            if (copy(&message, memory, sizeof message))
                see_vector(use, (uint64_t)message.msg_iov, message.msg_iovlen, used);
            break;
        case MESSAGES: see_messages(use, memory, size < used ? size : used); break;
    }
}

// -- calls -----------------------------------------------------------------------------------------------------------

static long run(unsigned which, const long *given) {
    long result = originals[which](given[0], given[1], given[2], given[3], given[4], given[5]);
    return calls[which].form == MESSAGES ? (int)result : result;
}

// Work may come to use the memory while the call waits, so one that meets protected pages then is made once more.
static long follow(unsigned which, const long *given) {
    for (bool is_again = false;; is_again = true) {
        struct use use = {.call = &calls[which]};
        if (guard_is_any()) see_all(&use, given, INT64_MAX);
        long result = run(which, given);
        int error = errno;
        if (use.is_any) {
            use.is_over = true;
            if (result > 0) see_all(&use, given, (uint64_t)result);
            guard_restore();
        }
        errno = error;
        if (result >= 0 || error != EFAULT || is_again || !guard_is_any()) return result;
    }
}

// A function of fewer arguments leaves it the rest.
#define FOLLOW(name, access, form, memory, size)                                \
    static long follow_##name(long a, long b, long c, long d, long e, long f) { \
        return follow(CALL_##name, (const long[ARGUMENTS]){a, b, c, d, e, f});  \
    }
ALL(FOLLOW)

#define FOLLOWER(name, access, form, memory, size) follow_##name,
static function *const followers[] = {ALL(FOLLOWER)};

// A call may be under way in another thread meanwhile, so what it needs is there before.
void system_calls_open(void) {
    for (unsigned which = 0; settings.hosts && which < CALLS; which++) {
        originals[which] = (function *)c_library_lead(calls[which].name, NULL);
        c_library_lead(calls[which].name, (void *)followers[which]);
    }
}

void system_calls_close(void) {
    for (unsigned which = 0; which < CALLS; which++) c_library_lead(calls[which].name, NULL);
}
