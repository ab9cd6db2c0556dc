#include "memory/client_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "ledger/stacks.h"
#include "memory/registered.h"

// The kernel moves at most 0x7ffff000 bytes a call, whatever it is asked for (read(2), NOTES; MAX_RW_COUNT of
// include/linux/fs.h), and stops short of a page that is missing.
#define PIECE_BYTES (1ull << 30)

static ssize_t move(uint64_t to, uint64_t from, uint64_t size_bytes) {
    if (size_bytes > PIECE_BYTES) size_bytes = PIECE_BYTES;
    struct iovec local = {(void *)to, size_bytes}, remote = {(void *)from, size_bytes};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
}

// Whether the kernel can read a page. It is asked for an action on a set of signals that does not exist, so that it
// looks at the set and refuses (as Abseil's AddressIsReadable does): to let it copy a byte takes twenty times as long.
static bool is_readable(uint64_t address) {
    enum { NO_SUCH_ACTION = -1, SET_BYTES = 8 };
    return syscall(SYS_rt_sigprocmask, NO_SUCH_ACTION, address & ~7ull, NULL, SET_BYTES) == 0 || errno != EFAULT;
}

// What is missing begins at an address of the side that begins at `start`.
static void see_missing(uint64_t address, uint64_t start, uint64_t size_bytes) {
    struct span block = registered_find(address);
    ledger_see_wrong((struct observation){.seen = SEEN_USED_AFTER_FREE,
                                    .thing = THING_REGISTERED,
                                    .stack = stack_of_call(),
                                    .address = address,
                                    .other = block.thing ? block.start : start,
                                    .size_bytes = size_bytes});
}

bool client_memory_read(void *to, uint64_t from, uint64_t size_bytes) {
    enum { PAGE_BYTES = 4096 };
    for (uint64_t at = from; at - from < size_bytes; at = (at & ~(PAGE_BYTES - 1ull)) + PAGE_BYTES)
        if (!is_readable(at)) {
            see_missing(at, from, size_bytes - (at - from));
            return false;
        }
    memcpy(to, (const void *)from, size_bytes);
    return true;
}

bool client_memory_copy(uint64_t to, uint64_t from, uint64_t size_bytes) {
    for (uint64_t done = 0; done < size_bytes;) {
        ssize_t moved = move(to + done, from + done, size_bytes - done);
        if (moved > 0) {
            done += (uint64_t)moved;
            continue;
        }
        if (moved < 0 && errno != EFAULT) {  // a sandbox without the call
            memmove((void *)(to + done), (const void *)(from + done), size_bytes - done);
            return true;
        }
        bool of_target = is_readable(from + done);
        see_missing((of_target ? to : from) + done, of_target ? to : from, size_bytes - done);
        return false;
    }
    return true;
}
