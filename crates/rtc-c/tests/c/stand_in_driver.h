/* What the stand-in for the driver was asked. */
#ifndef STAND_IN_DRIVER_H
#define STAND_IN_DRIVER_H

#include <stddef.h>

struct stand_in_launch {
  void *function;
  const char *name;
  unsigned grid[3], block[3], shared;
  void *stream;
  void *context;
  int count;
  unsigned char arguments[256];
};

/* The last launch. */
struct stand_in_launch *stand_in_last(void);
/* The sizes of the arguments of the next launches, to be copied. */
void stand_in_sizes(const size_t *sizes, size_t count);
/* The next call of this function fails. */
void stand_in_fail(const char *function, int code);
int stand_in_loads(void);
int stand_in_unloads(void);
int stand_in_destroyed(void);
int stand_in_retained(void);
void *stand_in_primary(void);

int cuCtxSetCurrent(void *context);
int cuCtxGetCurrent(void **context);

#endif
