/* A call of the fake nvcc, and the commands it comes to. */
#include "fake.h"

struct call {
    char *words[512];
    int count;
    char *inputs[32];
    int input_count;
    char *virtuals[8], *reals[8]; /* `80`; the second empty where only PTX is asked for. */
    int arch_count;
    char *output, *output_folder, *keep_folder, *compiler, *depend, *target;
    char mode; /* c, p (ptx), b (cubin), f (fatbin), d (-dlink), a (-lib), l (link) */
    int dry, keeps, debug, lines, relocatable, depends, phony;
    struct text host, host_link, device_front, assembler; /* Words for those tools, each quoted and with a blank before it. */
    struct text libraries;
};

enum kind { COMMAND, REMOVE, FILTER };

struct command {
    enum kind kind;
    char *line; /* As a dry run shows it. */
    char *file; /* For what is no command. */
    int first, last; /* Which texts a filter reads. */
};

struct plan {
    struct command commands[256];
    int count;
    char *texts[64]; /* Preprocessed so far and not yet filtered. */
    int text_count, filtered;
};

char *print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void parse(struct call *call, int argc, char **argv);
void make_plan(struct call *call, struct plan *plan, const char *top, const char *folder);
void filter(const struct call *call, const struct command *command, struct plan *plan);
