/* nvcc: reads its words and variables, makes the plan, and shows it or has it run. */
#include "plan.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *print(const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *line = NULL;
    if (vasprintf(&line, format, args) < 0) abort();
    va_end(args);
    return line;
}

static void add_words(struct call *call, const char *list) {
    char *state = NULL;
    for (char *word = strtok_r(strdup(list ? list : ""), " \n", &state); word; word = strtok_r(NULL, " \n", &state))
        if (call->count < 500) call->words[call->count++] = word;
}

static void set_arch(struct call *call, const char *word) {
    const char *virtual = strstr(word, "compute_"), *real = strstr(word, "sm_");
    if (call->arch_count == 8 || (!virtual && !real)) fail(1, "nvcc fatal   : Unsupported gpu architecture '%s'", word);
    call->virtuals[call->arch_count] = strndup(virtual ? virtual + 8 : real + 3, 2);
    call->reals[call->arch_count++] = real ? strndup(real + 3, 2) : "";
}

static const struct {
    const char *name;
    char mode;
} modes[] = {{"-c", 'c'}, {"-ptx", 'p'}, {"-cubin", 'b'}, {"-fatbin", 'f'}, {"-dlink", 'd'}, {"-lib", 'a'}};

static int take_mode(struct call *call, const char *word) {
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(word, modes[i].name) == 0) call->mode = modes[i].mode;
    if (strcmp(word, "-dc") == 0) call->mode = 'c', call->relocatable = 1;
    return call->mode;
}

static int take_switch(struct call *call, const char *word) {
    char before = call->mode;
    call->mode = 0;
    if (take_mode(call, word)) return 1;
    call->mode = before;
    if (strcmp(word, "--dryrun") == 0) return call->dry = 1;
    if (strcmp(word, "-keep") == 0 || strcmp(word, "--keep") == 0) return call->keeps = 1;
    if (strcmp(word, "-g") == 0) return add(&call->host, " -g"), call->debug = 1;
    if (strcmp(word, "-lineinfo") == 0) return call->lines = 1;
    if (strcmp(word, "-MD") == 0) return call->depends = 1;
    if (strcmp(word, "-MP") == 0) return call->phony = 1;
    if (strcmp(word, "-rdc=true") == 0) return call->relocatable = 1;
    if (strncmp(word, "-arch=", 6) == 0) return set_arch(call, word), 1;
    if (strncmp(word, "-I", 2) == 0 && word[2]) return add(&call->host, " -I\"%s\"", word + 2), 1;
    if (strncmp(word, "-D", 2) == 0 && word[2]) return add(&call->host, " -D\"%s\"", word + 2), 1;
    if (strncmp(word, "-L", 2) == 0 && word[2]) return add(&call->libraries, " -L\"%s\"", word + 2), 1;
    if (strncmp(word, "-l", 2) == 0) return add(&call->libraries, " %s", word), 1;
    return 0;
}

/* Gives whether the word takes the next one with it. */
static int take_valued(struct call *call, const char *word, char *value) {
    if (strcmp(word, "-o") == 0) return call->output = value, 1;
    if (strcmp(word, "-odir") == 0) return call->output_folder = value, 1;
    if (strcmp(word, "--keep-dir") == 0 || strcmp(word, "-keep-dir") == 0) return call->keep_folder = value, 1;
    if (strcmp(word, "-MF") == 0) return call->depend = value, 1;
    if (strcmp(word, "-MT") == 0) return call->target = value, 1;
    if (strcmp(word, "-ccbin") == 0) return call->compiler = value, 1;
    if (strcmp(word, "-gencode") == 0) return set_arch(call, value), 1;
    if (strcmp(word, "-t") == 0) return 1;
    if (strcmp(word, "-Xptxas") == 0) return add(&call->assembler, " %s", value), 1;
    if (strcmp(word, "-Xcompiler") == 0) return add(&call->host, " %s", value), 1;
    if (strcmp(word, "-Xlinker") == 0) return add(&call->host_link, " -Xlinker %s", value), 1;
    return 0;
}

void parse(struct call *call, int argc, char **argv) {
    add_words(call, getenv("NVCC_PREPEND_FLAGS"));
    for (int i = 1; i < argc && call->count < 500; i++) call->words[call->count++] = argv[i];
    add_words(call, getenv("NVCC_APPEND_FLAGS"));
    call->mode = 'l';
    for (int i = 0; i < call->count; i++) {
        char *word = call->words[i];
        if (word[0] != '-') {
            if (call->input_count < 32) call->inputs[call->input_count++] = word;
        } else if (strcmp(word, "-optf") == 0 && i + 1 < call->count) {
            struct text list = read_file(call->words[++i]);
            if (!list.at) fail(1, "nvcc fatal   : Could not open input file '%s'", call->words[i]);
            add_words(call, list.at);
        } else if (!take_switch(call, word)) {
            if (i + 1 >= call->count || !take_valued(call, word, call->words[i + 1]))
                fail(1, "nvcc fatal   : Unknown option '%s'", word);
            i++;
        }
    }
    if (!call->input_count) fail(1, "nvcc fatal   : No input files specified; use option --help for more information");
    if (!call->arch_count) set_arch(call, "sm_75");
    if (!call->compiler) call->compiler = getenv("NVCC_CCBIN");
    const char *flags = getenv("OCG_FLAGS");
    if (flags && *flags) add(&call->assembler, " %s", flags);
    flags = getenv("NVVM_FLAGS");
    if (flags && *flags) add(&call->device_front, " %s", flags);
    for (char *state = NULL, *part = strtok_r(strdup(getenv("LPATH") ? getenv("LPATH") : ""), ":", &state); part;
         part = strtok_r(NULL, ":", &state))
        add(&call->libraries, " -L\"%s\"", part);
}

/* What nvcc.profile tells nvcc to look at becomes a macro of every host command. */
static void read_profile(struct call *call, const char *here) {
    struct text profile = read_file(print("%s/nvcc.profile", here)), learned = {0};
    if (!profile.at) return;
    follow("nvcc", "", profile, &learned, WITH_LINES);
    add(&call->host, " -D__NVCC_LEARNED__=%016llx", hash(learned.at ? learned.at : "", learned.len));
    char *version[] = {call->compiler ? call->compiler : "gcc", "-dumpversion", NULL};
    struct text said = {0};
    int code = run(version, &said);
    if (code) fail(1, "nvcc fatal   : Failed to preprocess host compiler properties.");
    add(&call->device_front, " --gnu_version=%016llx", hash(said.at ? said.at : "", said.len));
}

/* The line as a shell would split it: only what `make_plan` writes. */
static char **split(const char *line) {
    char **words = calloc(256, sizeof *words);
    struct text word = {0};
    int count = 0, open = 0, any = 0;
    for (const char *c = line;; c++) {
        if ((!*c || (*c == ' ' && !open))) {
            if (any && count < 255) words[count++] = word.at ? word.at : strdup("");
            word = (struct text){0};
            any = 0;
            if (!*c) return words;
        } else if (*c == '"') {
            open = !open;
            any = 1;
        } else {
            if (*c == '\\' && c[1]) c++;
            add_bytes(&word, c, 1);
            any = 1;
        }
    }
}

/* `$CICC_PATH/…` and the question for `ar` are the only things a shell would have to do. */
static int run_line(const char *line) {
    const char *cicc = "\"$CICC_PATH/cicc\"", *question = strstr(line, "-print-prog-name=ar`\"");
    if (strncmp(line, cicc, strlen(cicc)) == 0)
        return run(split(print("\"%s/cicc\"%s", getenv("CICC_PATH"), line + strlen(cicc))), NULL);
    if (question) {
        char *compiler = strndup(line + 2, (size_t)(question - line - 3));
        char *asked[] = {compiler, "-print-prog-name=ar", NULL};
        struct text said = {0};
        if (run(asked, &said) || !said.len) return 1;
        said.at[said.len - 1] = 0;
        return run(split(print("\"%s\"%s", said.at, strchr(question, '"') + 1)), NULL);
    }
    return run(split(line), NULL);
}

static void export(const char *name, const char *value, int dry) {
    if (dry) fprintf(stderr, "#$ %s=%s\n", name, value);
    setenv(name, value, 1);
}

static void show_plan(const struct plan *plan) {
    for (int i = 0; i < plan->count; i++) {
        const struct command *command = &plan->commands[i];
        if (command->kind == REMOVE) fprintf(stderr, "#$ rm %s\n", command->file);
        else if (command->kind == FILTER) fprintf(stderr, "#$ -- Filter Dependencies -- > %s\n", command->file);
        else fprintf(stderr, "#$ %s \n", command->line);
    }
}

static int run_plan(const struct call *call, struct plan *plan) {
    for (int i = 0; i < plan->count; i++) {
        const struct command *command = &plan->commands[i];
        int code = 0;
        if (command->kind == REMOVE) unlink(command->file);
        else if (command->kind == FILTER) filter(call, command, plan);
        else code = run_line(command->line);
        if (code) return code;
    }
    return 0;
}

/* Where nvcc stands: as it was called, or as PATH finds it. No link is followed. */
static char *own_folder(const char *called) {
    const char *slash = strrchr(called, '/');
    if (slash) return strndup(called, (size_t)(slash - called));
    char *state = NULL;
    for (char *part = strtok_r(strdup(getenv("PATH")), ":", &state); part; part = strtok_r(NULL, ":", &state))
        if (access(print("%s/%s", part, called), X_OK) == 0) return part;
    fail(1, "nvcc fatal   : cannot find itself");
}

static char *own_files;

/* However it ends. */
static void remove_own_files(void) {
    DIR *folder = opendir(own_files);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.') unlink(print("%s/%s", own_files, entry->d_name));
    if (folder) closedir(folder);
    rmdir(own_files);
}

int nvcc(int argc, char **argv) {
    static struct call call;
    static struct plan plan;
    parse(&call, argc, argv);
    char *here = own_folder(argv[0]), *top = print("%s/..", here);
    export("_HERE_", here, call.dry);
    export("TOP", top, call.dry);
    export("CICC_PATH", print("%s/nvvm/bin", top), call.dry);
    export("PATH", print("%s/nvvm/bin:%s:%s", top, here, getenv("PATH")), call.dry);
    read_profile(&call, here);
    const char *temporary = getenv("TMPDIR");
    char *folder = call.keep_folder ? print("%s/", call.keep_folder) : "";
    if (!call.keeps) {
        own_files = print("%s/fakeXXXXXX", temporary && *temporary ? temporary : "/tmp");
        if (!mkdtemp(own_files)) fail(1, "nvcc fatal   : no folder for temporary files");
        atexit(remove_own_files);
        folder = print("%s/", own_files);
    }
    make_plan(&call, &plan, top, folder);
    if (!call.dry) return run_plan(&call, &plan);
    show_plan(&plan);
    return 0;
}
