#include "interpreter.h"

#include <dlfcn.h>
#include <stdio.h>

#include "control.h"
#include "reach.h"
#include "runtime.h"

// Runs with the interpreter's lock, soon after it was asked for and before the interpreter exits.
static int register_exit(void *unused) {
    (void)unused;
    int (*run)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "PyRun_SimpleString");
    Dl_info here;
    char text[1024];
    if (!run || !dladdr((void *)register_exit, &here)) return 0;
    int length = snprintf(text, sizeof text,
                          "try:\n"
                          "    import atexit as _atexit, ctypes as _ctypes\n"
                          "    _atexit.register(_ctypes.CDLL('''%s''').quiesce_interpreter_exits)\n"
                          "    del _atexit, _ctypes\n"
                          "except ImportError:\n"
                          "    pass\n",
                          here.dli_fname);
    if (length < (int)sizeof text) run(text);
    return 0;
}

void interpreter_watch(void) {
    int (*add)(int (*)(void *), void *) = (int (*)(int (*)(void *), void *))dlsym(RTLD_DEFAULT, "Py_AddPendingCall");
    if (add) add(register_exit, NULL);
}

void quiesce_interpreter_exits(void) {
    if (runtime_enter(NULL) == OK) {
        reach_forget();
        reach_mark();
    }
    runtime_leave(OK);
}
