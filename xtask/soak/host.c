/* The host side: gcc in its modes, as, ld, ar. */
#include "fake.h"
#include "tools.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    const char *folders[64], *output, *input, *included, *arch;
    size_t count;
    int debug;
    char **argv;
} call;

static int is_there(const char *path) {
    int fd = open(path, O_RDONLY);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

static void split_list(const char *list) {
    char *copy = strdup(list ? list : ""), *state = NULL;
    for (char *part = strtok_r(copy, ":", &state); part; part = strtok_r(NULL, ":", &state))
        if (call.count < 64) call.folders[call.count++] = part;
}

/* Beside the file that asks, then along -I, then the variables; null where there is none. */
static char *search(const char *name, const char *asking) {
    char *path = NULL;
    if (name[0] == '/') return is_there(name) ? strdup(name) : NULL;
    const char *slash = asking ? strrchr(asking, '/') : NULL;
    if (asking) {
        if (asprintf(&path, "%.*s%s", slash ? (int)(slash - asking + 1) : 0, asking, name) < 0) abort();
        if (is_there(path)) return path;
    }
    for (size_t i = 0; i < call.count; i++) {
        if (asprintf(&path, "%s/%s", call.folders[i], name) < 0) abort();
        if (is_there(path)) return path;
    }
    return NULL;
}

/* Of the C form of a fat binary only the assembly counts. */
static void take_assembly(struct text in, struct text *out) {
    char *line = strstr(in.at, "asm(\n");
    for (line = line ? line + 5 : NULL; line && *line == '"';) {
        char *end = strchr(line, '\n');
        const char *quote = end;
        while (quote && quote > line && *quote != '"') quote--;
        if (!quote || quote - line < 3) return;
        for (char *c = line + 1; c < quote - 2; c++) {
            if (*c == '\\') c++;
            add_bytes(out, c, 1);
        }
        add(out, "\n");
        line = end + 1;
    }
}

/* Files with `#pragma once`. As for gcc, one that is as long, was changed in the same second and says the same is read already. */
static struct {
    struct text in;
    time_t second;
} once[64];
static size_t once_count;

static time_t second_of(const char *path) {
    struct stat found;
    return stat(path, &found) == 0 ? found.st_mtim.tv_sec : 0;
}

static int is_once(const char *path, struct text in) {
    for (size_t i = 0; i < once_count; i++)
        if (once[i].in.len == in.len && memcmp(once[i].in.at, in.at, in.len) == 0 && once[i].second == second_of(path))
            return 1;
    return 0;
}

static void expand(const char *path, const char *entering, struct text *out, int depth);

static void expand_line(const char *path, int number, const char *line, size_t len, struct text *out, int depth) {
    char name[512], quote = 0;
    if (len == 0 || strncmp(line, "//", 2) == 0) {
        add(out, "\n");
    } else if (sscanf(line, "#include %c%511[^\">\n]", &quote, name) == 2 && (quote == '"' || quote == '<')) {
        char *found = search(name, quote == '"' ? path : NULL);
        if (!found) fail(1, "%s:%d:10: fatal error: %s: No such file or directory", path, number, name);
        expand(found, " 1", out, depth + 1);
        add(out, "# %d \"%s\" 2\n", number + 1, path);
    } else if (sscanf(line, "@pp has %511[^\n]", name) == 1) {
        add(out, "= pp has %s: %s\n", name, search(name, path) ? "yes" : "no");
    } else if (sscanf(line, "@pp def %511[^\n]", name) == 1) {
        const char *value = "undefined";
        size_t named = strlen(name);
        for (char **word = call.argv; *word; word++)
            if (strncmp(*word, "-D", 2) == 0 && strncmp(*word + 2, name, named) == 0 && (*word)[2 + named] == '=')
                value = *word + 3 + named;
        add(out, "= pp def %s: %s\n", name, value);
    } else {
        struct text one = {0};
        add_bytes(&one, line, len);
        follow("pp", call.arch, one, out, WITH_LINES);
    }
}

static void expand(const char *path, const char *entering, struct text *out, int depth) {
    struct text in = read_file(path);
    if (!in.at) fail(1, "cc1plus: fatal error: %s: No such file or directory", path);
    if (depth > 20) fail(1, "%s: error: #include nested too deeply", path);
    if (is_once(path, in)) return;
    if (strncmp(in.at, "#pragma once\n", 13) == 0 && once_count < 64) {
        once[once_count].in = in;
        once[once_count++].second = second_of(path);
    }
    size_t len = strlen(path);
    if (len > 9 && strcmp(path + len - 9, ".fatbin.c") == 0) {
        take_assembly(in, out);
        return;
    }
    add(out, "# %d \"%s\"%s\n", depth > 0, path, entering);
    if (depth == 0) add(out, "# 0 \"<built-in>\"\n# 0 \"<command-line>\"\n");
    if (depth == 0 && call.included) {
        char *found = search(call.included, NULL);
        if (!found) fail(1, "cc1plus: fatal error: %s: No such file or directory", call.included);
        expand(found, " 1", out, 1);
        add(out, "# 1 \"%s\" 2\n", path);
    }
    int number = 0;
    for (char *line = in.at; *line;) {
        char *end = strchr(line, '\n');
        size_t length = end ? (size_t)(end - line) : strlen(line);
        expand_line(path, ++number, line, length, out, depth);
        line += length + (end ? 1 : 0);
    }
}

/* A link stub includes files that macros name. */
static void take_named(const char *macro, struct text *out) {
    size_t len = strlen(macro);
    for (char **word = call.argv; *word; word++) {
        if (strncmp(*word, macro, len) != 0) continue;
        char *path = strndup(*word + len, strlen(*word + len) - 1);
        struct text in = read_file(path);
        if (!in.at) fail(1, "fatal error: %s: No such file or directory", base_name(path));
        if (strstr(in.at, "asm(\n")) take_assembly(in, out);
        else add_bytes(out, in.at, in.len);
    }
}

static struct text compiled(void) {
    struct text whole = {0}, out = {0};
    being_compiled = call.input;
    expand(call.input, "", &whole, 0);
    add(&out, "\t.file \"%s\"\n", base_name(call.input));
    if (call.debug) follow("host", "host", (struct text){"@host pwd\n", 10, 10}, &out, WITH_LINES);
    follow("host", "host", whole, &out, call.debug ? WITH_LINES : WITHOUT_LINES);
    take_named("-DFATBINFILE=\"", &out);
    take_named("-DREGISTERLINKBINARYFILE=\"", &out);
    add(&out, "\t.ident \"gcc %s\"\n", (const char *)release + 11);
    return out;
}

static int assemble(const char *from) {
    char *words[70] = {"as", NULL};
    size_t at = 1;
    words[at++] = (char *)from;
    words[at++] = "-o";
    words[at++] = (char *)call.output;
    words[at] = NULL;
    return run(words, NULL);
}

static int compile_to_object(void) {
    struct text text = compiled();
    char *from = NULL;
    const char *folder = getenv("TMPDIR");
    if (asprintf(&from, "%s/cc%d.s", folder && *folder ? folder : "/tmp", (int)getpid()) < 0) abort();
    write_through(from, &text);
    int code = assemble(from);
    unlink(from);
    return code;
}

static int link_program(int argc, char **argv) {
    char **words = calloc((size_t)argc * 4 + 80, sizeof *words);
    size_t at = 0;
    words[at++] = "ld";
    split_list(getenv("LIBRARY_PATH"));
    for (int i = 1; i < argc; i++) {
        char *state = NULL;
        if (strncmp(argv[i], "-Wl,", 4) == 0)
            for (char *part = strtok_r(strdup(argv[i] + 4), ",", &state); part; part = strtok_r(NULL, ",", &state))
                words[at++] = part;
        else if (strcmp(argv[i], "-Xlinker") == 0 && i + 1 < argc)
            words[at++] = argv[++i];
        else if (strncmp(argv[i], "-D", 2) != 0 && strncmp(argv[i], "-m", 2) != 0)
            words[at++] = argv[i];
    }
    for (size_t i = 0; i < call.count && i < 64; i++) {
        char *word = NULL;
        if (asprintf(&word, "-L%s", call.folders[i]) < 0) abort();
        words[at++] = word;
    }
    return run(words, NULL);
}

int gcc(int argc, char **argv) {
    char mode = 'l', assembler = 0;
    call.argv = argv;
    call.arch = "host";
    for (int i = 1; i < argc; i++) {
        char *word = argv[i];
        if (strcmp(word, "-print-prog-name=ar") == 0) return puts("ar") < 0;
        if (strcmp(word, "-dumpversion") == 0) return printf("12.%s\n", (const char *)release + 11) < 0;
        if (strcmp(word, "-E") == 0 || strcmp(word, "-c") == 0 || strcmp(word, "-S") == 0) mode = word[1];
        else if (strcmp(word, "-x") == 0 && i + 1 < argc) assembler = strcmp(argv[++i], "assembler") == 0;
        else if (strcmp(word, "-o") == 0 && i + 1 < argc) call.output = argv[++i];
        else if (strcmp(word, "-include") == 0 && i + 1 < argc) call.included = argv[++i];
        else if (strcmp(word, "-g") == 0) call.debug = 1;
        else if (strncmp(word, "-I", 2) == 0 && call.count < 60) call.folders[call.count++] = word + 2;
        else if (strcmp(word, "-isystem") == 0 && i + 1 < argc && call.count < 60) call.folders[call.count++] = argv[++i];
        else if (strncmp(word, "-D__CUDA_ARCH__=", 16) == 0) call.arch = strndup(word + 16, strlen(word + 16) - 1);
        else if (word[0] != '-') call.input = word;
    }
    if (mode == 'l') {
        call.count = 0;
        return link_program(argc, argv);
    }
    if (!call.input || !call.output) fail(1, "gcc: fatal error: no input files");
    split_list(getenv("CPATH"));
    if (assembler) return assemble(call.input);
    if (mode == 'c') return compile_to_object();
    struct text out = {0};
    if (mode == 'S') out = compiled();
    else expand(call.input, "", &out, 0);
    write_through(call.output, &out);
    return 0;
}
