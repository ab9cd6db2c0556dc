#include "lifetime/interpreter.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

// CPython's C API, of which only what every release from 3.2 on has (its "Stable ABI"); found by name, for most clients
// have no interpreter. Nothing is bound to a name in a module of the client's, and no module stays that was not there.
struct method {  // PyMethodDef
    const char *name;
    void *(*function)(void *self, void *arguments);
    int flags;
    const char *text;
};
enum { WITHOUT_ARGUMENTS = 4 };  // METH_NOARGS

static struct {
    void *(*import)(const char *name);
    void *(*modules)(void);
    void *(*find)(void *dictionary, const char *key);
    int (*remove)(void *dictionary, const char *key);
    void *(*make_function)(const struct method *method, void *self, void *module);
    void *(*call_method)(void *object, const char *name, const char *format, ...);
    void (*drop)(void *object);
    void (*clear_error)(void);
    void *none;
} python;

static void (*search)(void);

static bool find_interface(void) {
    python.import = (void *(*)(const char *))dlsym(RTLD_DEFAULT, "PyImport_ImportModule");
    python.modules = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyImport_GetModuleDict");
    python.find = (void *(*)(void *, const char *))dlsym(RTLD_DEFAULT, "PyDict_GetItemString");
    python.remove = (int (*)(void *, const char *))dlsym(RTLD_DEFAULT, "PyDict_DelItemString");
    python.make_function = (void *(*)(const struct method *, void *, void *))dlsym(RTLD_DEFAULT, "PyCFunction_NewEx");
    python.call_method = (void *(*)(void *, const char *, const char *, ...))dlsym(RTLD_DEFAULT, "PyObject_CallMethod");
    python.drop = (void (*)(void *))dlsym(RTLD_DEFAULT, "Py_DecRef");
    python.clear_error = (void (*)(void))dlsym(RTLD_DEFAULT, "PyErr_Clear");
    python.none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
    return python.import && python.modules && python.find && python.remove && python.make_function &&
           python.call_method && python.drop && python.clear_error && python.none;
}

static void *interpreter_exits(void *self, void *arguments) {
    (void)self, (void)arguments;
    search();
    void (*keep)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "Py_IncRef");
    if (keep) keep(python.none);
    return python.none;
}

static const struct method METHOD = {"interpreter_exits", interpreter_exits, WITHOUT_ARGUMENTS, NULL};

// Runs with the interpreter's lock, soon after it was asked for and before the interpreter exits.
static int register_exit(void *unused) {
    (void)unused;
    bool was_there = python.find(python.modules(), "atexit") != NULL;
    void *module = python.import("atexit"), *function = module ? python.make_function(&METHOD, NULL, NULL) : NULL;
    void *answer = function ? python.call_method(module, "register", "O", function) : NULL;
    if (answer) python.drop(answer);
    if (function) python.drop(function);
    if (module) python.drop(module);
    if (module && !was_there) python.remove(python.modules(), "atexit");
    python.clear_error();
    return 0;
}

void interpreter_watch(void (*exits)(void)) {
    search = exits;
    int (*add)(int (*)(void *), void *) = (int (*)(int (*)(void *), void *))dlsym(RTLD_DEFAULT, "Py_AddPendingCall");
    if (add && find_interface()) add(register_exit, NULL);
}
