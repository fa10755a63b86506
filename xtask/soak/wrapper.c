/* A host compiler's wrapper that is linked statically, as Go's and musl's are: no preloaded library sees what it reads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    char word[64] = "none", option[80];
    FILE *file = fopen("data/d1", "r");
    if (file && fgets(word, sizeof word, file)) word[strcspn(word, "\n ")] = 0;
    if (file) fclose(file);
    snprintf(option, sizeof option, "-DWRAPPED=%s", word);
    char **words = calloc((size_t)argc + 2, sizeof *words);
    words[0] = "g++";
    words[1] = option;
    for (int i = 1; i < argc; i++) words[i + 1] = argv[i];
    execvp("g++", words);
    perror("g++");
    return 127;
}
