/* The tools, by the name that the program is called by. */
int gcc(int argc, char **argv);
int as(int argc, char **argv);
int ld(int argc, char **argv);
int ar(int argc, char **argv);
int front_end(int argc, char **argv);
int ptxas(int argc, char **argv);
int fatbinary(int argc, char **argv);
int nvlink(int argc, char **argv);

/* Writes lines over a file through memory: on tmpfs only the first changes a time. */
int mapper(int argc, char **argv);
