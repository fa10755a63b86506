/* What the parts of the fake toolkit share. One program: what it is called decides which tool it is. */
#include <stddef.h>

/* A growing text. */
struct text {
    char *at;
    size_t len, room;
};

void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void add_bytes(struct text *text, const char *bytes, size_t len);

/* The whole file, or a null `at` where it cannot be read. */
struct text read_file(const char *path);
/* Opens the name as it stands and truncates it, as most tools do. */
void write_through(const char *path, const struct text *text);
/* Removes a regular file first, as `as` and `ld` do. */
void write_anew(const char *path, const struct text *text, int mode);

unsigned long long hash(const char *bytes, size_t len);
const char *base_name(const char *path);

/* Runs a program found in PATH to its end and gives its exit code; what it prints goes to `output` if that is there. */
int run(char *const *words, struct text *output);
/* Says what is wrong, and ends. */
void fail(int code, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

/* Without: no line marker, no blank line, and no space around a line. */
enum lines { WITHOUT_LINES, WITH_LINES };

/* Does what the lines of `in` tell this stage to do and copies the rest. */
void follow(const char *stage, const char *arch, struct text in, struct text *out, enum lines lines);

/* The line that is being followed. */
extern int line_now;

/* What gcc was told to compile. */
extern const char *being_compiled;

int nvcc(int argc, char **argv);

/* Which of several releases of this tool this is: the soak writes over it in a copy of the program. */
extern const volatile char release[];
