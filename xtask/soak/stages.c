/* What a source can tell a stage to do. A line `@STAGE VERB WORDS` is followed by that stage, which writes down what it
   learned; all other lines are handed on, so what any stage learned is in the object. `@STAGE?80 …` and `@STAGE?host …`
   count for one architecture. docs/soak.md lists the verbs. */
#include "fake.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#ifdef WALKS
extern char **environ;
#endif

int line_now;

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void add_sorted(struct text *out, char **names, size_t count) {
    qsort(names, count, sizeof *names, by_text);
    for (size_t i = 0; i < count; i++) add(out, " %s", names[i]);
}

static void add_flat(struct text *out, struct text learned) {
    if (!learned.at) {
        add(out, " absent");
        return;
    }
    add(out, " [");
    for (size_t i = 0; i < learned.len; i++) add_bytes(out, learned.at[i] == '\n' ? "|" : learned.at + i, 1);
    add(out, "]");
}

/* As gcc finds the folder for debug information: PWD where it is true. */
static void add_folder(struct text *out) {
    char folder[PATH_MAX];
    struct stat named, here;
    const char *pwd = getenv("PWD");
    if (pwd && pwd[0] == '/' && stat(pwd, &named) == 0 && stat(".", &here) == 0 && named.st_dev == here.st_dev &&
        named.st_ino == here.st_ino)
        add(out, " %s", pwd);
    else
        add(out, " %s", getcwd(folder, sizeof folder) ? folder : "?");
}

static void add_listing(struct text *out, const char *path) {
    char *names[256];
    size_t count = 0;
    DIR *folder = opendir(path);
    if (!folder) {
        add(out, " absent");
        return;
    }
    for (struct dirent *entry; count < 256 && (entry = readdir(folder));)
        if (entry->d_name[0] != '.') names[count++] = strdup(entry->d_name);
    closedir(folder);
    add_sorted(out, names, count);
}

/* Only of a program that has the list of all variables, which the file of a program says. */
static void add_environment(struct text *out) {
#ifdef WALKS
    char *names[64];
    size_t count = 0;
    for (char **each = environ; *each && count < 64; each++)
        if (strncmp(*each, "SK_", 3) == 0) names[count++] = *each;
    add_sorted(out, names, count);
#else
    add(out, " not looked at");
#endif
}

/* Of a pipe that somebody may fill again. It is empty while the writer of the last reader's line has it open. */
static void add_first_line(struct text *out, const char *path) {
    char line[256];
    ssize_t len;
    struct stat found = {0};
    do {
        int fd = open(path, O_RDONLY);
        if (fd >= 0 && fstat(fd, &found)) found.st_mode = 0;
        len = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
        if (fd >= 0) close(fd);
    } while (len == 0 && S_ISFIFO(found.st_mode));
    line[len < 0 ? 0 : len] = 0;
    line[strcspn(line, "\n")] = 0;
    add(out, len < 0 ? " absent" : " [%s]", line);
}

static void add_program(struct text *out, char *name) {
    char *words[] = {name, "asked", NULL};
    struct text said = {0};
    int code = run(words, &said);
    add(out, " exit %d", code);
    add_flat(out, said);
}

static void write_beside(const char *path, const char *words) {
    struct text text = {0};
    add(&text, "%s\n", words);
    FILE *file = fopen(path, "w");
    if (!file) fail(1, "error: cannot write %s", path);
    fwrite(text.at, 1, text.len, file);
    fclose(file);
}

/* Asks the program that runs the histories, over a socket without a file, which no watcher of files or connections sees: what the time is, or for
   the moment to go on. An empty answer where nobody listens. */
static void ask_soak(const char *name, char question, char *answer, size_t room) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strnlen(name, sizeof address.sun_path - 1), got = 0;
    memcpy(address.sun_path + 1, name, len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* Past the C library: a tool that is seen to connect is one whose results nobody keeps. */
    if (fd >= 0 && syscall(SYS_connect, fd, &address, offsetof(struct sockaddr_un, sun_path) + 1 + len) == 0 &&
        send(fd, &question, 1, MSG_NOSIGNAL) == 1) {
        ssize_t more;
        while (got + 1 < room && (more = recv(fd, answer + got, room - 1 - got, 0)) > 0) got += (size_t)more;
    }
    answer[got] = 0;
    if (fd >= 0) close(fd);
}

static int exit_code(const char *stage) {
    return strcmp(stage, "ptxas") == 0 || strcmp(stage, "nvlink") == 0 ? 255 : strcmp(stage, "cudafe") == 0 ? 2 : 1;
}

static void do_as_told(const char *stage, char *verb, char *rest, struct text *out) {
    struct stat entry;
    char real[PATH_MAX];
    add(out, "= %s %s %s:", stage, verb, rest);
    if (strcmp(verb, "read") == 0) {
        add_flat(out, read_file(rest));
    } else if (strcmp(verb, "input") == 0) {
        add(out, " %s", being_compiled ? being_compiled : "?");
    } else if (strcmp(verb, "first") == 0) {
        add_first_line(out, rest);
    } else if (strcmp(verb, "env") == 0) {
        const char *value = getenv(rest);
        add(out, value ? " [%s]" : " unset", value);
    } else if (strcmp(verb, "exists") == 0) {
        add(out, " %s", stat(rest, &entry) == 0 ? "yes" : "no");
    } else if (strcmp(verb, "link") == 0) {
        ssize_t len = readlink(rest, real, sizeof real - 1);
        add(out, " %.*s", len < 0 ? 1 : (int)len, len < 0 ? "?" : real);
    } else if (strcmp(verb, "real") == 0) {
        add(out, " %s", realpath(rest, real) ? real : "?");
    } else if (strcmp(verb, "list") == 0) {
        add_listing(out, rest);
    } else if (strcmp(verb, "write") == 0) {
        char *words = strchr(rest, ' ');
        if (words) *words++ = 0;
        write_beside(rest, words ? words : "");
    } else if (strcmp(verb, "exec") == 0) {
        add_program(out, rest);
    } else if (strcmp(verb, "pwd") == 0) {
        add_folder(out);
    } else if (strcmp(verb, "meet") == 0) {
        ask_soak(rest, 'm', real, sizeof real);
    } else if (strcmp(verb, "time") == 0) {
        char *name = strtok(rest, " ");
        ask_soak(name ? name : "", 't', real, sizeof real);
        add(out, " \"%s\"", *real ? real : "00:00:00");
    } else if (strcmp(verb, "line") == 0) {
        add(out, " %d", line_now);
    } else if (strcmp(verb, "environ") == 0) {
        add_environment(out);
    } else if (strcmp(verb, "warn") == 0) {
        fprintf(stderr, "%s: %d: warning: %s\n", stage, line_now, rest);
    } else if (strcmp(verb, "fail") == 0) {
        fail(exit_code(stage), "%s: error: %s", stage, rest);
    } else {
        fail(1, "%s: error: no such verb: %s", stage, verb);
    }
    add(out, "\n");
}

static int is_marker(const char *line) { return line[0] == '#' && line[1] == ' ' && line[2] >= '0' && line[2] <= '9'; }

static void copy_line(const char *line, size_t len, struct text *out, enum lines lines) {
    if (lines == WITHOUT_LINES) {
        while (len && (line[len - 1] == ' ' || line[len - 1] == '\t')) len--;
        while (len && (*line == ' ' || *line == '\t')) line++, len--;
        if (!len || is_marker(line)) return;
    }
    /* nvcc's and our folders for intermediate files differ. */
    if (is_marker(line) && memmem(line, len, ".cudafe1.", 9)) return;
    add_bytes(out, line, len);
    add(out, "\n");
}

void follow(const char *stage, const char *arch, struct text in, struct text *out, enum lines lines) {
    size_t named = strlen(stage);
    line_now = 0;
    for (char *line = in.at; line && *line;) {
        char *end = strchr(line, '\n');
        size_t len = end ? (size_t)(end - line) : strlen(line);
        const char *after = line + 1 + named;
        line_now = is_marker(line) ? atoi(line + 2) - 1 : line_now + 1;
        if (len > named + 1 && line[0] == '@' && strncmp(line + 1, stage, named) == 0 && (*after == ' ' || *after == '?')) {
            char *copy = strndup(after, len - named - 1), *state = NULL;
            char *condition = *copy == '?' ? strtok_r(copy + 1, " ", &state) : NULL;
            char *verb = strtok_r(condition ? NULL : copy, " ", &state);
            if (verb && (!condition || strcmp(condition, arch) == 0)) do_as_told(stage, verb, state ? state : "", out);
            free(copy);
        } else {
            copy_line(line, len, out, lines);
        }
        line += len + (end ? 1 : 0);
    }
}
