/* Many threads at once on shared handles: each kernel is compiled once, and each thread has its own error. Arguments: an
   empty folder. */
/* Barriers. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "check.h"

enum { THREADS = 16, ROUNDS = 300, KERNELS = 3 };

static warpcc_rtc_cache *cache;
static warpcc_rtc_request *shared;
static warpcc_rtc_image *passed[THREADS];
static pthread_barrier_t barrier;

static void *work(void *argument) {
  size_t me = (size_t)argument;
  size_t round;
  char name[32], parameters[64], wrong[32];
  snprintf(name, sizeof name, "k%zu", me);
  snprintf(wrong, sizeof wrong, "wrong_%zu", me);
  CHECK(warpcc_rtc_error_length() == 0);
  pthread_barrier_wait(&barrier);
  for (round = 0; round < ROUNDS; ++round) {
    warpcc_rtc_image *image;
    size_t kernel = (me + round) % KERNELS;
    snprintf(parameters, sizeof parameters, "#define N %zu", kernel);
    OK(warpcc_rtc_cache_get_image(cache, parameters, "k", "__global__ void k(int* x) { *x = N; }", TO_NUL,
                                  "compute_90", NULL, &image));
    if (round == 0) passed[me] = image;
    else warpcc_rtc_image_free(image);
    OK(warpcc_rtc_cache_get(cache, shared, NULL, &image));
    warpcc_rtc_image_free(image);
    /* An error of this thread's, which no other thread's takes the place of. */
    INVALID(wrong, warpcc_rtc_cache_get_image(cache, "", "k", "", 0, wrong, NULL, &image));
  }
  pthread_barrier_wait(&barrier);
  /* What another thread made may be freed here. */
  warpcc_rtc_image_free(passed[(me + 1) % THREADS]);
  return NULL;
}

int main(int count, char **arguments) {
  pthread_t threads[THREADS];
  warpcc_rtc_counts counts;
  size_t index;
  CHECK(count == 2);
  cache = cache_in(arguments[1], NULL);
  OK(warpcc_rtc_request_new("shared", "extern \"C\" __global__ void s() {}", TO_NUL, "compute_90", &shared));
  pthread_barrier_init(&barrier, NULL, THREADS);
  for (index = 0; index < THREADS; ++index)
    CHECK(pthread_create(&threads[index], NULL, work, (void *)index) == 0);
  for (index = 0; index < THREADS; ++index) CHECK(pthread_join(threads[index], NULL) == 0);
  OK(warpcc_rtc_cache_counts(cache, &counts));
  CHECK(counts.made == KERNELS + 1 && counts.disk == 0);
  CHECK(counts.made + counts.memory == 2 * THREADS * ROUNDS);
  CHECK(warpcc_rtc_error_length() == 0);
  warpcc_rtc_request_free(shared);
  warpcc_rtc_cache_free(cache);
  printf("done\n");
  return 0;
}
