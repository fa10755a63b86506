/* Texts, files and processes for the fake tools, through the C library alone, so that a preloaded library sees them. */
#include "fake.h"
#include "tools.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

const char *being_compiled;
const volatile char release[] = "@@RELEASE@@00000000";

void add_bytes(struct text *text, const char *bytes, size_t len) {
    if (text->len + len + 1 > text->room) {
        text->room = (text->len + len + 1) * 2;
        text->at = realloc(text->at, text->room);
        if (!text->at) abort();
    }
    memcpy(text->at + text->len, bytes, len);
    text->len += len;
    text->at[text->len] = 0;
}

void add(struct text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *line = NULL;
    int len = vasprintf(&line, format, args);
    va_end(args);
    if (len < 0) abort();
    add_bytes(text, line, (size_t)len);
    free(line);
}

void fail(int code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(code);
}

struct text read_file(const char *path) {
    struct text text = {0};
    int fd = open(path, O_RDONLY);
    if (fd < 0) return text;
    char part[65536];
    ssize_t got;
    add_bytes(&text, "", 0);
    while ((got = read(fd, part, sizeof part)) > 0) add_bytes(&text, part, (size_t)got);
    close(fd);
    if (got < 0) {
        free(text.at);
        text.at = NULL;
    }
    return text;
}

static void write_with(const char *path, const struct text *text, int mode) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    if (fd < 0) fail(1, "error: cannot write %s: %s", path, strerror(errno));
    for (size_t done = 0; done < text->len;) {
        ssize_t got = write(fd, text->at + done, text->len - done);
        if (got < 0) fail(1, "error: writing %s: %s", path, strerror(errno));
        done += (size_t)got;
    }
    close(fd);
}

void write_through(const char *path, const struct text *text) { write_with(path, text, 0666); }

void write_anew(const char *path, const struct text *text, int mode) {
    struct stat now;
    if (lstat(path, &now) == 0 && S_ISREG(now.st_mode)) unlink(path);
    write_with(path, text, mode);
}

unsigned long long hash(const char *bytes, size_t len) {
    unsigned long long value = 0xcbf29ce484222325ULL;
    for (size_t i = 0; i < len; i++) value = (value ^ (unsigned char)bytes[i]) * 0x100000001b3ULL;
    return value;
}

const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int run(char *const *words, struct text *output) {
    int ends[2] = {-1, -1};
    if (output && pipe(ends) != 0) fail(1, "error: no pipe");
    fflush(stdout);
    fflush(stderr);
    pid_t child = fork();
    if (child < 0) fail(1, "error: no process");
    if (child == 0) {
        if (output) {
            dup2(ends[1], 1);
            close(ends[0]);
            close(ends[1]);
        }
        execvp(words[0], words);
        fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
        _exit(127);
    }
    if (output) {
        close(ends[1]);
        char part[4096];
        ssize_t got;
        while ((got = read(ends[0], part, sizeof part)) > 0) add_bytes(output, part, (size_t)got);
        close(ends[0]);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int mapper(int argc, char **argv) {
    int fd = argc == 2 ? open(argv[1], O_RDWR) : -1;
    struct stat now;
    if (fd < 0 || fstat(fd, &now) != 0 || !S_ISREG(now.st_mode) || !now.st_size) return 1;
    size_t room = (size_t)now.st_size;
    char *at = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), line[4096];
    if (at == MAP_FAILED) return 1;
    while (fgets(line, sizeof line, stdin)) {
        size_t len = strlen(line);
        memcpy(at, line, len < room ? len : room);
        putchar('.');
        fflush(stdout);
    }
    return 0;
}
