// An NVRTC that compiles nothing: a source "fails" does, and any other becomes a comment with the options. Under its
// other name it is a libNVVM of the same kind.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program {
    char *source, *name, ptx[4096], log[256];
};

int nvrtcVersion(int *major, int *minor) {
    *major = 12;
    *minor = 3;
    return 0;
}

int nvrtcCreateProgram(struct program **made, const char *source, const char *name, int count, const char **headers,
                       const char **names) {
    (void)count, (void)headers, (void)names;
    *made = calloc(1, sizeof **made);
    (*made)->source = strdup(source);
    (*made)->name = strdup(name ? name : "default_program");
    return 0;
}

int nvrtcDestroyProgram(struct program **program) {
    free((*program)->source);
    free((*program)->name);
    free(*program);
    *program = NULL;
    return 0;
}

int nvrtcCompileProgram(struct program *program, int count, const char **options) {
    if (!strcmp(program->source, "fails")) {
        strcpy(program->log, "kernel.cu(1): catastrophic error: cannot open source file \"cuda_fp16.h\"\n");
        return 6;
    }
    strcpy(program->ptx, ".version 8.0\n.target sm_80\n.address_size 64\n//");
    for (int i = 0; i < count; i++) strcat(strcat(program->ptx, " "), options[i]);
    strcat(program->ptx, "\n.visible .entry nothing() { ret; }\n.file 1 \"/there/");
    strcat(strcat(program->ptx, program->name), "\"\n");
    return 0;
}

int nvrtcGetPTXSize(struct program *program, size_t *bytes) {
    *bytes = strlen(program->ptx) + 1;
    return 0;
}

int nvrtcGetPTX(struct program *program, char *ptx) {
    strcpy(ptx, program->ptx);
    return 0;
}

int nvrtcGetProgramLogSize(struct program *program, size_t *bytes) {
    *bytes = strlen(program->log) + 1;
    return 0;
}

int nvrtcGetProgramLog(struct program *program, char *log) {
    strcpy(log, program->log);
    return 0;
}

int nvvmCreateProgram(struct program **made) { return nvrtcCreateProgram(made, "", "", 0, NULL, NULL); }

int nvvmCompileProgram(struct program *program, int count, const char **options) {
    return nvrtcCompileProgram(program, count, options);
}

int nvvmGetCompiledResultSize(struct program *program, size_t *bytes) { return nvrtcGetPTXSize(program, bytes); }

int nvvmGetCompiledResult(struct program *program, char *ptx) { return nvrtcGetPTX(program, ptx); }
