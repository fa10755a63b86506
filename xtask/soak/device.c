/* The device side: cudafe++ and cicc, ptxas, fatbinary; and which tool this program is. */
#include "fake.h"
#include "tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The name of an external function, as far as a source has one: the module id is made of it. */
static const char *function_name(const struct text *in) {
    static char name[64];
    const char *line = strstr(in->at, "\nvoid ");
    return line && sscanf(line, "\nvoid %63[A-Za-z0-9_]", name) == 1 ? name : "main";
}

static struct {
    const char *c_file, *device_file, *stub, *stub_name, *included, *id, *output, *source, *source_path, *arch, *input;
    int makes_id, lines, only_syntax;
} edg;

static void read_words(int argc, char **argv) {
    static const struct {
        const char *flag;
        const char **place;
    } valued[] = {{"--gen_c_file_name", &edg.c_file},
                  {"--gen_device_file_name", &edg.device_file},
                  {"--stub_file_name", &edg.stub},
                  {"--include_file_name", &edg.included},
                  {"--module_id_file_name", &edg.id},
                  {"--orig_src_file_name", &edg.source},
                  {"--orig_src_path_name", &edg.source_path},
                  {"-arch", &edg.arch},
                  {"-o", &edg.output}};
    for (int i = 1; i < argc; i++) {
        size_t at = 0;
        while (at < sizeof valued / sizeof *valued && strcmp(argv[i], valued[at].flag) != 0) at++;
        if (at < sizeof valued / sizeof *valued && i + 1 < argc) *valued[at].place = argv[++i];
        else if (strcmp(argv[i], "--gen_module_id_file") == 0) edg.makes_id = 1;
        else if (strcmp(argv[i], "-generate-line-info") == 0) edg.lines = 1;
        else if (strcmp(argv[i], "--device-syntax-only") == 0) edg.only_syntax = 1;
        else if (argv[i][0] != '-') edg.input = argv[i];
    }
}

static struct text module_id(const struct text *in) {
    struct text id = {0};
    if (edg.makes_id) {
        const char *path = edg.source_path ? edg.source_path : "";
        add(&id, "_%08llx_%zu_%s_%s", hash(path, strlen(path)) & 0xffffffff, strlen(edg.source), "cu", function_name(in));
        if (edg.id) write_through(edg.id, &id);
    } else if (edg.id) {
        id = read_file(edg.id);
        if (!id.at) fail(2, "error: no module id");
    }
    return id;
}

static void cudafe(struct text in, const struct text *id) {
    struct text out = {0};
    add(&out, "cudafe++ %s of %s, %s\n", (const char *)release + 11, edg.source, id->at ? id->at : "");
    follow("cudafe", "host", in, &out, WITH_LINES);
    add(&out, "#include \"%s\"\n", edg.stub);
    write_through(edg.c_file, &out);
}

static void cicc(int argc, char **argv, struct text in, const struct text *id) {
    struct text out = {0}, stub = {0};
    const char *arch = edg.arch ? edg.arch + strlen("compute_") : "";
    add(&out, "// cicc %s for %s, %s\n", (const char *)release + 11, arch, id->at ? id->at : "");
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "-O", 2) == 0 || strncmp(argv[i], "-opt", 4) == 0) add(&out, "// %s\n", argv[i]);
    if (edg.lines) follow("cicc", arch, (struct text){"@cicc pwd\n", 10, 10}, &out, WITH_LINES);
    follow("cicc", arch, in, &out, edg.lines ? WITH_LINES : WITHOUT_LINES);
    if (edg.stub) {
        add(&stub, "stub %016llx %s\n# %d \"%s\"\n#include \"%s\"\n", hash(out.at, out.len), id->at ? id->at : "",
            line_now, edg.source ? edg.source : "", edg.included);
        write_through(edg.stub, &stub);
    }
    if (edg.only_syntax) return;
    if (edg.c_file) write_through(edg.c_file, &stub);
    if (edg.device_file) write_through(edg.device_file, &stub);
    if (edg.output) write_through(edg.output, &out);
}

int front_end(int argc, char **argv) {
    read_words(argc, argv);
    struct text in = edg.input ? read_file(edg.input) : (struct text){0};
    if (!in.at) fail(2, "error: no preprocessed text");
    struct text id = module_id(&in);
    if (strcmp(base_name(argv[0]), "cicc") == 0) cicc(argc, argv, in, &id);
    else cudafe(in, &id);
    return 0;
}

int ptxas(int argc, char **argv) {
    const char *input = NULL, *output = NULL, *arch = "";
    struct text out = {0};
    add(&out, "CUBIN ptxas %s", (const char *)release + 11);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc) output = argv[++i];
        else if (argv[i][0] != '-') input = argv[i];
        else add(&out, " %s", argv[i]);
        if (strncmp(argv[i], "-arch=", 6) == 0) arch = strchr(argv[i], '_') ? strchr(argv[i], '_') + 1 : "";
    }
    add(&out, "\n");
    struct text in = input ? read_file(input) : (struct text){0};
    if (!in.at) fail(255, "ptxas fatal   : no input");
    follow("ptxas", arch, in, &out, WITH_LINES);
    if (output) write_through(output, &out);
    return 0;
}

/* The C form of a fat binary, letter for letter as 13.5's frame, with two numbers that stand for the content. */
static void write_c_form(const char *path, const struct text *fat, int relocatable) {
    const char *section = relocatable ? "__nv_relfatbin" : ".nv_fatbin";
    struct text out = {0};
    add(&out,
        "#ifndef __SKIP_INTERNAL_FATBINARY_HEADERS\n#include \"fatbinary_section.h\"\n#endif\n"
        "#define __CUDAFATBINSECTION  \".nvFatBinSegment\"\n#define __CUDAFATBINDATASECTION  \"%s\"\n"
        "asm(\n\".section %s, \\\"a\\\"\\n\"\n\".align 8\\n\"\n\"fatbinData:\\n\"\n\".quad 0x%016llx,0x%016zx\\n\"\n"
        "\".text\\n\");\n#ifdef __cplusplus\nextern \"C\" {\n#endif\nextern const unsigned long long fatbinData[2];\n"
        "#ifdef __cplusplus\n}\n#endif\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n",
        section, section, hash(fat->at, fat->len), fat->len);
    add(&out, "%s",
        relocatable
            ? "#undef __FATIDNAME_CORE\n#undef __FATIDNAME\n#define __FATIDNAME_CORE(x) __fatbinwrap##x\n"
              "#define __FATIDNAME(x) __FATIDNAME_CORE(x)\nextern const __fatBinC_Wrapper_t __FATIDNAME(__NV_MODULE_ID)"
            : "static const __fatBinC_Wrapper_t __fatDeviceText");
    add(&out, " __attribute__ ((aligned (8))) __attribute__ ((section (__CUDAFATBINSECTION)))= \n"
              "\t{ 0x466243b1, 1, fatbinData, 0 };\n#undef __CUDAFATBINDATASECTION\n#undef __CUDAFATBINSECTION\n"
              "#ifdef __cplusplus\n}\n#endif\n");
    write_through(path, &out);
}

int fatbinary(int argc, char **argv) {
    struct text out = {0}, images = {0};
    const char *output = NULL, *c_form = NULL;
    int relocatable = 0;
    add(&out, "FATBIN fatbinary %s\n", (const char *)release + 11);
    for (int i = 1; i < argc; i++) {
        const char *file = strstr(argv[i], ",file=");
        if (strncmp(argv[i], "--create=", 9) == 0) output = argv[i] + 9;
        else if (strncmp(argv[i], "--embedded-fatbin=", 18) == 0) c_form = argv[i] + 18;
        else if (strcmp(argv[i], "--device-c") == 0) relocatable = 1;
        else if (strncmp(argv[i], "--image", 7) == 0 && file) {
            struct text image = read_file(file + 6);
            if (!image.at) fail(1, "fatbinary fatal : no image");
            add(&images, "image %.*s %s\n%s", (int)(file - argv[i]), argv[i], base_name(file + 6), image.at);
        }
    }
    follow("fatbin", "", images, &out, WITH_LINES);
    if (output) write_through(output, &out);
    if (c_form) write_c_form(c_form, &out, relocatable);
    return 0;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*tool)(int, char **);
    } tools[] = {{"nvcc", nvcc},           {"cudafe++", front_end}, {"cicc", front_end}, {"ptxas", ptxas},
                 {"fatbinary", fatbinary}, {"nvlink", nvlink},      {"as", as},          {"ld", ld},
                 {"ar", ar},               {"mapper", mapper}};
    const char *name = base_name(argv[0]);
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
        if (strcmp(name, tools[i].name) == 0) return tools[i].tool(argc, argv);
    return gcc(argc, argv);
}
