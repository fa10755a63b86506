#define BOTH 1
