#include "execs.h"

#include "dynamic_symbols.h"
#include "jumps.h"
#include "memory.h"
#include "object.h"
#include "run.h"
#include "system.h"

/* A program that gets an environment of its own (env -i, subprocess with env={}) would not find the run, and nothing
   that it does with memory would be judged. All functions of glibc that start a program end in execve, which does no
   more than the system call. A jump at its entry leads here: the call is made with the variables that lead to the run
   where it has none, and the rest of execve sets errno. Who wants to leave a run sets QUIESCE_SIMULATOR to nothing. */

enum { ON_STACK = 512, CALL_BYTES = 7 };

static const unsigned char landing[] = {0xf3, 0x0f, 0x1e, 0xfa};                     // endbr64
static const unsigned char call[CALL_BYTES] = {0xb8, SYS_execve, 0, 0, 0, 0x0f, 0x05};  // mov, syscall

__attribute__((used)) static ElfW(Addr) exec_after;  // what comes after the call

static int has(char *const *environment, const char *variable, size_t name_bytes) {
    for (char *const *each = environment; each && *each; each++) {
        size_t same = 0;
        while (same < name_bytes && (*each)[same] == variable[same]) same++;
        if (same == name_bytes) return 1;
    }
    return 0;
}

/* Return the run's assembler in place of NVIDIA's, and any other program as it is. What nvcc packs into a program for
   several devices, it puts into files of its own, and has to be machine code there. */
static const char *program_instead(const char *path, char *const *words, char assembler[PATH_BYTES]) {
    if (!path || !is_same(base_name(path), "ptxas")) return path;
    for (char *const *each = words; each && each[0] && each[1]; each++)
        if (is_same(each[0], "-o") && begins_with(base_name(each[1]), "tmpxft_")) return path;
    *assembler = 0;
    int has_room = append(assembler, PATH_BYTES, run_folder()) && append(assembler, PATH_BYTES, "/programs/ptxas");
    return has_room && *run_folder() && is_file(assembler) ? assembler : path;
}

/* It runs in a child of vfork: with the memory of its parent, and any stack. */
__attribute__((used)) static long exec_in_run(const char *path, char *const *words, char *const *environment) {
    const char *more[RUN_VARIABLES];
    char assembler[PATH_BYTES];
    path = program_instead(path, words, assembler);
    char *on_stack[ON_STACK], **made = on_stack;
    size_t count = 0, added = 0, name_bytes;
    for (int each = 0; each < RUN_VARIABLES; each++) {
        const char *variable = run_variable(each, &name_bytes);
        if (*variable && !has(environment, variable, name_bytes)) more[added++] = variable;
    }
    run_variable(0, &name_bytes);
    while (environment && environment[count]) count++;
    if (count + added + 1 > ON_STACK) made = memory_map((count + added + 1) * sizeof *made);
    if (!added || !made || has(environment, run_variable(0, &name_bytes), name_bytes))
        return call_system(SYS_execve, (long)path, (long)words, (long)environment, 0);
    for (size_t each = 0; each < count; each++) made[each] = environment[each];
    for (size_t each = 0; each < added; each++) made[count + each] = (char *)more[each];
    made[count + added] = NULL;
    long result = call_system(SYS_execve, (long)path, (long)words, (long)made, 0);
    if (made != on_stack) memory_unmap(made, (count + added + 1) * sizeof *made);
    return result;
}

void exec_entry(void);
__asm__(".text\n"
        ".type exec_entry, @function\n"
        "exec_entry:\n"
        "    subq $8, %rsp\n"
        "    call exec_in_run\n"
        "    addq $8, %rsp\n"
        "    jmp *exec_after(%rip)\n"
        ".size exec_entry, . - exec_entry\n");

static int begins(const unsigned char *code, const unsigned char *with, size_t bytes) {
    for (size_t each = 0; each < bytes; each++)
        if (code[each] != with[each]) return 0;
    return 1;
}

void execs_follow(struct link_map *c_library) {
    dynamic_symbols names;
    object in;
    if (!dynamic_symbols_open(&names, c_library)) return;
    ElfW(Addr) entry = dynamic_symbols_find(&names, "execve");
    if (!entry || !object_describe(&in, c_library, c_library->l_name)) return;
    if (begins((const unsigned char *)entry, landing, sizeof landing)) entry += sizeof landing;
    if (!begins((const unsigned char *)entry, call, sizeof call)) return;
    exec_after = entry + CALL_BYTES;
    jumps_write_near(&in, entry, (ElfW(Addr))exec_entry, c_library->l_name);
}
