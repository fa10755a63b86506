#define SYSTEM 1
