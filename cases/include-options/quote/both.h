#define BOTH 2
