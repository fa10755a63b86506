/* What the C programs of the tests stand on: a check that says where it failed and what the library said. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "warpcc_rtc.h"

#define CHECK(what)                                                                               \
  do {                                                                                            \
    if (!(what)) {                                                                                \
      fprintf(stderr, "%s:%d: %s\n%s\n", __FILE__, __LINE__, #what, warpcc_rtc_error_text());     \
      exit(1);                                                                                    \
    }                                                                                             \
  } while (0)

#define OK(call) CHECK((call) == WARPCC_RTC_STATUS_OK)

/* The call fails with this status, and the text says these words. */
#define FAILS(status, words, call)                                                                \
  do {                                                                                            \
    CHECK((call) == (status));                                                                    \
    CHECK(strstr(warpcc_rtc_error_text(), words) != NULL);                                        \
    CHECK(strlen(warpcc_rtc_error_text()) == warpcc_rtc_error_length());                          \
  } while (0)

#define INVALID(words, call) FAILS(WARPCC_RTC_STATUS_INVALID, words, call)

#define TO_NUL WARPCC_RTC_TO_NUL

/* A cache that keeps in `folder`. */
static warpcc_rtc_cache *cache_in(const char *folder, const warpcc_rtc_request *common) {
  warpcc_rtc_settings *settings;
  warpcc_rtc_cache *cache;
  OK(warpcc_rtc_settings_new(&settings));
  OK(warpcc_rtc_settings_add_folder(settings, folder, 0, 0));
  OK(warpcc_rtc_cache_open(NULL, settings, common, &cache));
  warpcc_rtc_settings_free(settings);
  return cache;
}

#endif
