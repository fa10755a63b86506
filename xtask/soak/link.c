/* What makes one file of several: as, ld, ar, nvlink, and the archives that they read. */
#include "fake.h"
#include "tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int as(int argc, char **argv) {
    const char *input = NULL, *output = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc) output = argv[++i];
        else if (argv[i][0] != '-') input = argv[i];
    }
    if (!input || !output) fail(1, "as: nothing to do");
    struct text in = read_file(input), out = {0};
    if (!in.at) fail(1, "as: cannot open the input");
    add(&out, "OBJECT as %s\n", (const char *)release + 11);
    follow("as", "host", in, &out, WITH_LINES);
    write_anew(output, &out, 0666);
    return 0;
}

/* What is in an object, an archive or a thin archive; the members of the last are files of their own. */
static int take(const char *path, const char *who, struct text *out) {
    struct text in = read_file(path);
    if (!in.at) return 0;
    if (strncmp(in.at, "!<thin>\n", 8) != 0) {
        add_bytes(out, in.at, in.len);
        return 1;
    }
    char *state = NULL;
    for (char *name = strtok_r(in.at + 8, "\n", &state); name; name = strtok_r(NULL, "\n", &state)) {
        char *member = NULL;
        int folder = name[0] == '/' ? 0 : (int)(base_name(path) - path);
        if (asprintf(&member, "%.*s%s", folder, path, name) < 0) abort();
        if (!take(member, who, out)) fail(1, "%s: error: %s: cannot open member %s", who, path, name);
    }
    return 1;
}

static int take_library(const char *name, char **folders, size_t count, const char *who, struct text *out) {
    static const char *const ends[] = {"so", "a"};
    for (size_t i = 0; i < count; i++)
        for (size_t end = 0; end < 2; end++) {
            char *path = NULL;
            if (asprintf(&path, "%s/lib%s.%s", folders[i], name, ends[end]) < 0) abort();
            if (take(path, who, out)) return 1;
        }
    return 0;
}

/* Objects and libraries in order; folders count wherever they stand. */
static void take_all(int argc, char **argv, const char *who, struct text *out) {
    char *folders[64];
    size_t count = 0;
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "-L", 2) == 0 && count < 64) folders[count++] = argv[i] + 2;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-o") == 0 || strcmp(argv[i], "-Map") == 0 || strcmp(argv[i], "--host-ccbin") == 0) {
            i++;
        } else if (strncmp(argv[i], "-l", 2) == 0) {
            if (!take_library(argv[i] + 2, folders, count, who, out) && strcmp(who, "ld") == 0)
                fail(1, "ld: cannot find %s: No such file or directory", argv[i]);
        } else if (argv[i][0] != '-' && !take(argv[i], who, out)) {
            fail(1, "%s: cannot find %s", who, argv[i]);
        }
    }
}

int ld(int argc, char **argv) {
    struct text all = {0}, out = {0}, map = {0};
    const char *output = "a.out", *beside = NULL;
    take_all(argc, argv, "ld", &all);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc) output = argv[++i];
        else if (strcmp(argv[i], "-Map") == 0 && i + 1 < argc) beside = argv[++i];
        else if (strncmp(argv[i], "-Map=", 5) == 0) beside = argv[i] + 5;
        else if (strncmp(argv[i], "--dependency-file=", 18) == 0) beside = argv[i] + 18;
    }
    add(&out, "PROGRAM ld %s\n", (const char *)release + 11);
    follow("link", "host", all, &out, WITH_LINES);
    if (beside) {
        add(&map, "map of %s\n", output);
        write_through(beside, &map);
    }
    write_anew(output, &out, 0777);
    return 0;
}

/* `ar cr ARCHIVE OBJECT…`: members in text, each under its name; one of the same name is replaced. */
int ar(int argc, char **argv) {
    if (argc < 3) fail(1, "ar: nothing to do");
    struct text before = read_file(argv[2]), out = {0};
    add(&out, "!<arch>\n");
    char *member = before.at ? strstr(before.at, "\n/member ") : NULL;
    while (member) {
        char *next = strstr(member + 1, "\n/member "), name[512] = "";
        sscanf(member, "\n/member %511s", name);
        int replaced = 0;
        for (int i = 3; i < argc; i++) replaced |= strcmp(base_name(argv[i]), name) == 0;
        if (!replaced) add_bytes(&out, member + 1, next ? (size_t)(next - member) : strlen(member + 1));
        member = next;
    }
    for (int i = 3; i < argc; i++) {
        struct text in = read_file(argv[i]);
        if (!in.at) fail(1, "ar: %s: No such file or directory", argv[i]);
        add(&out, "/member %s ar %s\n%s", base_name(argv[i]), (const char *)release + 11, in.at);
    }
    write_through(argv[2], &out);
    return 0;
}

int nvlink(int argc, char **argv) {
    struct text all = {0}, out = {0}, registered = {0};
    const char *output = NULL, *list = NULL, *arch = "";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc) output = argv[++i];
        else if (strncmp(argv[i], "--register-link-binaries=", 25) == 0) list = argv[i] + 25;
        else if (strncmp(argv[i], "--arch=sm_", 10) == 0) arch = argv[i] + 10;
    }
    if (!output) fail(1, "nvlink: nothing to do");
    take_all(argc, argv, "nvlink", &all);
    add(&out, "LINKED nvlink %s for %s, %016llx\n", (const char *)release + 11, arch, hash(all.at ? all.at : "", all.len));
    struct text followed = {0};
    follow("nvlink", arch, all, &followed, WITH_LINES);
    /* Only what it learned: the objects themselves are in the hash. */
    for (char *line = followed.at; line && *line;) {
        char *end = strchr(line, '\n');
        size_t len = end ? (size_t)(end - line) + 1 : strlen(line);
        if (strncmp(line, "= nvlink ", 9) == 0) add_bytes(&out, line, len);
        line += len;
    }
    write_through(output, &out);
    if (list) {
        registered = read_file(list);
        add(&registered, "DEFINE_REGISTER_FUNC(%016llx)\n", hash(all.at ? all.at : "", all.len));
        write_through(list, &registered);
    }
    return 0;
}
