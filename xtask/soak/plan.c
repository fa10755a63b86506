/* The commands of each mode, as 13.5 shows them in a dry run, and the filter of dependencies. */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *stem_of(const char *path) {
    char *stem = strdup(base_name(path)), *dot = strrchr(stem, '.');
    if (dot) *dot = 0;
    return stem;
}

static int ends_with(const char *path, const char *end) {
    size_t len = strlen(path), least = strlen(end);
    return len > least && strcmp(path + len - least, end) == 0;
}

static void push(struct plan *plan, enum kind kind, char *text) {
    if (plan->count == 256) fail(1, "nvcc fatal   : too many commands");
    plan->commands[plan->count++] = (struct command){
        kind, kind == COMMAND ? text : NULL, kind == COMMAND ? NULL : text, plan->filtered, plan->text_count};
}

static const char *list_of(const struct call *call) {
    struct text list = {0};
    for (int i = 0; i < call->arch_count; i++) add(&list, "%s%s0", i ? "," : "", call->virtuals[i]);
    return list.at;
}

static const char *words(const struct text *text) { return text->at ? text->at : ""; }

static const char *compiler(const struct call *call) { return call->compiler ? call->compiler : "gcc"; }

static void preprocess(const struct call *call, struct plan *plan, const char *top, const char *arch, const char *source, char *to) {
    push(plan, COMMAND,
         print("%s%s -D__CUDA_ARCH_LIST__=%s -E -x c++ -D__CUDACC__ %s \"-I%s/include\" -include \"cuda_runtime.h\" -m64 \"%s\" -o "
               "\"%s\"",
               compiler(call), arch ? print(" -D__CUDA_ARCH__=%s0", arch) : "", list_of(call), words(&call->host), top, source, to));
    if (plan->text_count < 64) plan->texts[plan->text_count++] = to;
}

static char *front(const char *source) {
    char folder[4096];
    char *path = source[0] == '/' ? strdup(source) : print("%s/%s", getcwd(folder, sizeof folder), source);
    return print("--c++17 --orig_src_file_name \"%s\" --orig_src_path_name \"%s\"", source, path);
}

/* What cicc and ptxas make of one architecture; `name` is where their files stand. */
static void device(const struct call *call, struct plan *plan, int at, const char *source, const char *folder, const char *stem,
                   const char *name, int stubs) {
    char *ptx = call->mode == 'p' && call->output ? call->output : print("%s%s.ptx", call->mode == 'p' ? "" : folder, name);
    char *files = stubs ? print("--gen_c_file_name \"%s%s.cudafe1.c\" --stub_file_name \"%s%s.cudafe1.stub.c\" "
                                "--gen_device_file_name \"%s%s.cudafe1.gpu\"",
                                folder, name, folder, name, folder, name)
                        : "--gen_module_id_file";
    push(plan, COMMAND,
         print("\"$CICC_PATH/cicc\" %s %s -arch compute_%s -m64 %s%s --include_file_name \"%s.fatbin.c\" --module_id_file_name "
               "\"%s%s.module_id\" %s \"%s%s.cpp1.ii\" --simt-only -o \"%s\"",
               front(source), call->relocatable ? "--device-c" : "", call->virtuals[at], words(&call->device_front),
               call->lines ? " -generate-line-info" : "", stem, folder, stubs ? stem : name, files, folder, name, ptx));
    if (call->mode == 'p') return;
    char *lines = call->lines ? " --generate-line-info" : "";
    char *cubin = call->mode == 'b' ? call->output ? call->output : print("%s.cubin", stem)
                                    : print("%s%s.sm_%s.cubin", folder, name, call->reals[at]);
    if (call->reals[at][0])
        push(plan, COMMAND, print("ptxas -arch=sm_%s -m64%s%s \"%s\" -o \"%s\"", call->reals[at], lines, words(&call->assembler), ptx, cubin));
    else
        push(plan, COMMAND, print("ptxas -arch=compute_%s -m64%s%s \"%s\"", call->virtuals[at], lines, words(&call->assembler), ptx));
}

static char *image(const struct call *call, int at, const char *folder, const char *name) {
    const char *real = call->reals[at];
    return real[0] ? print(" \"--image3=kind=elf,sm=%s,file=%s%s.sm_%s.cubin\"", real, folder, name, real)
                   : print(" \"--image3=kind=ptx,sm=%s,file=%s%s.ptx\"", call->virtuals[at], folder, name);
}

static const char *name_for(const struct call *call, int at, const char *stem) {
    return call->arch_count > 1 ? print("%s.compute_%s", stem, call->virtuals[at]) : stem;
}

static void compile(const struct call *call, struct plan *plan, const char *top, const char *folder, const char *source, char *object) {
    const char *stem = stem_of(source), *last = name_for(call, call->arch_count - 1, stem);
    int host = strchr("cdal", call->mode) != NULL;
    char *text = print("%s%s.cpp4.ii", folder, stem);
    if (host) preprocess(call, plan, top, NULL, source, text);
    for (int i = 0; i < call->arch_count; i++)
        preprocess(call, plan, top, call->virtuals[i], source, print("%s%s.cpp1.ii", folder, name_for(call, i, stem)));
    if (call->depends) {
        push(plan, FILTER, call->depend ? call->depend : print("%s.d", stem));
        plan->filtered = plan->text_count;
    }
    if (host)
        push(plan, COMMAND,
             print("cudafe++ %s --gnu_version=120200 --gen_c_file_name \"%s%s.cudafe1.cpp\" --stub_file_name \"%s.cudafe1.stub.c\" --gen_module_id_file "
                   "--module_id_file_name \"%s%s.module_id\" --simt-only \"%s\"",
                   front(source), folder, last, last, folder, stem, text));
    for (int i = 0; i < call->arch_count; i++) device(call, plan, i, source, folder, stem, name_for(call, i, stem), host);
    if (call->mode == 'p' || call->mode == 'b') return;
    struct text images = {0};
    for (int i = 0; i < call->arch_count; i++) add(&images, "%s", image(call, i, folder, name_for(call, i, stem)));
    char *fat = call->mode == 'f' ? call->output ? call->output : print("%s.fatbin", stem) : print("%s%s.fatbin", folder, stem);
    char *c_form = host ? print(" --embedded-fatbin=\"%s%s.fatbin.c\"", folder, stem) : "";
    push(plan, COMMAND, print("fatbinary --create=\"%s\" -64%s%s%s", fat, images.at, c_form, call->relocatable ? " --device-c" : ""));
    if (!host) return;
    push(plan, COMMAND,
         print("%s -D__CUDA_ARCH__=%s0 -D__CUDA_ARCH_LIST__=%s -c -x c++ %s \"-I%s/include\" -m64 \"%s%s.cudafe1.cpp\" -o \"%s\"",
               compiler(call), call->virtuals[call->arch_count - 1], list_of(call), words(&call->host), top, folder, last, object));
}

static void compile_host(const struct call *call, struct plan *plan, const char *top, const char *source, char *object) {
    push(plan, COMMAND, print("%s -D__CUDA_ARCH_LIST__=%s -c -x c++ -D__NVCC__ %s \"-I%s/include\" -m64 \"%s\" -o \"%s\"", compiler(call),
                              list_of(call), words(&call->host), top, source, object));
}

static void link_devices(const struct call *call, struct plan *plan, const char *top, const char *folder, const char *name,
                         const char *objects, char *object) {
    struct text images = {0};
    for (int i = 0; i < call->arch_count; i++) {
        const char *arch = call->reals[i][0] ? call->reals[i] : call->virtuals[i];
        push(plan, COMMAND,
             print("nvlink -m64 --arch=sm_%s --register-link-binaries=\"%s%s.reg.c\" %s \"-L%s/lib\" -cpu-arch=X86_64%s -lcudadevrt -o "
                   "\"%s%s.sm_%s.cubin\" --host-ccbin \"%s\"",
                   arch, folder, name, words(&call->libraries), top, objects, folder, name, arch, compiler(call)));
        add(&images, " \"--image3=kind=elf,sm=%s,file=%s%s.sm_%s.cubin\"", arch, folder, name, arch);
    }
    push(plan, COMMAND,
         print("fatbinary --create=\"%s%s.fatbin\" -64 -link%s --embedded-fatbin=\"%s%s.fatbin.c\"", folder, name, images.at, folder, name));
    push(plan, COMMAND,
         print("%s -D__CUDA_ARCH_LIST__=%s -c -x c++ -DFATBINFILE=\"\\\"%s%s.fatbin.c\\\"\" "
               "-DREGISTERLINKBINARYFILE=\"\\\"%s%s.reg.c\\\"\" -I. %s \"-I%s/include\" -m64 \"%s/bin/crt/link.stub\" -o \"%s\"",
               compiler(call), list_of(call), folder, name, folder, name, words(&call->host), top, top, object));
}

void make_plan(struct call *call, struct plan *plan, const char *top, const char *folder) {
    struct text objects = {0};
    int makes_one = strchr("al", call->mode) != NULL;
    char *name = print("%s_dlink", call->output ? stem_of(call->output) : "a");
    if (call->mode == 'd') name = print("%s", call->output ? stem_of(call->output) : "a_dlink");
    if (strchr("dl", call->mode)) push(plan, REMOVE, print("%s%s.reg.c", folder, name));
    if (strchr("pbf", call->mode) && call->arch_count > 1 && call->mode != 'f') fail(1, "nvcc fatal   : several architectures");
    for (int i = 0; i < call->input_count; i++) {
        const char *source = call->inputs[i], *stem = stem_of(source);
        char *object = makes_one || call->mode == 'd' ? print("%s%s.o", folder, stem)
                       : call->output                 ? call->output
                                                      : print("%s%s%s.o", call->output_folder ? call->output_folder : "", call->output_folder ? "/" : "", stem);
        if (ends_with(source, ".cu")) compile(call, plan, top, folder, source, object);
        else if (ends_with(source, ".cpp")) compile_host(call, plan, top, source, object);
        else object = (char *)source;
        add(&objects, " \"%s\"", object);
    }
    if (call->mode == 'a')
        push(plan, COMMAND, print("\"`%s -print-prog-name=ar`\" cr \"%s\"%s", compiler(call), call->output ? call->output : "a.a", objects.at));
    if (call->mode == 'd') link_devices(call, plan, top, folder, name, objects.at, call->output ? call->output : "a_dlink.o");
    if (call->mode != 'l') return;
    char *linked = print("%s%s.o", folder, name);
    link_devices(call, plan, top, folder, name, objects.at, linked);
    push(plan, COMMAND,
         print("%s -D__CUDA_ARCH_LIST__=%s -m64 -Wl,--start-group \"%s\"%s%s%s \"-L%s/lib\" -lcudadevrt -lcudart_static -Wl,--end-group -o "
               "\"%s\"",
               call->compiler ? call->compiler : "g++", list_of(call), linked, objects.at, words(&call->host_link), words(&call->libraries),
               top, call->output ? call->output : "a.out"));
}

static int is_known(char **seen, int count, const char *path) {
    for (int i = 0; i < count; i++)
        if (strcmp(seen[i], path) == 0) return 1;
    return 0;
}

/* The rule, from the line markers that enter a file. */
void filter(const struct call *call, const struct command *command, struct plan *plan) {
    char *seen[512], *source = NULL, path[4096];
    int count = 0, flag;
    struct text rule = {0}, phony = {0};
    for (int i = command->first; i < command->last; i++) {
        struct text in = read_file(plan->texts[i]);
        char *state = NULL, *line = strtok_r(in.at, "\n", &state);
        for (int first = 1; line; line = strtok_r(NULL, "\n", &state)) {
            int number, found = sscanf(line, "# %d \"%4095[^\"]\" %d", &number, path, &flag);
            if (found < 2 || is_known(seen, count, path) || (!first && (found < 3 || flag != 1)) || count == 512) continue;
            seen[count++] = strdup(path);
            if (first && !source) source = seen[count - 1];
            else if (!first) add(&rule, " \\\n    %s", path), add(&phony, "\n%s:\n", path);
            first = 0;
        }
    }
    const char *target = call->target ? call->target : call->output ? call->output : NULL;
    if (!target) {
        const char *folder = call->output_folder;
        target = print("%s%s%s.o", folder ? folder : "", folder ? "/" : "", stem_of(source ? source : ""));
    }
    struct text out = {0};
    add(&out, "%s : %s%s\n%s", target, source ? source : "", rule.at ? rule.at : "", call->phony && phony.at ? phony.at : "");
    write_through(command->file, &out);
}
