#define PLAIN 1
static int plain;
