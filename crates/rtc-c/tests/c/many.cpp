/// The C++ header: many kernels at once, packs, files in errors, and what a callback throws.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <warpcc_rtc.hpp>

namespace rtc = warpcc::rtc;

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
      return 1;                                                               \
    }                                                                         \
  } while (0)

static std::vector<rtc::request> requests(std::size_t count, std::size_t wrong) {
  std::vector<rtc::request> all;
  for (std::size_t index = 0; index < count; ++index) {
    const std::string number = std::to_string(index);
    const std::string source = "extern \"C\" __global__ void m(int* x) { *x = " + (index == wrong ? "oops" : number) + "; }";
    all.emplace_back("m" + number, source, "compute_90");
    all.back().file("src/many.cu");
  }
  return all;
}

/// Each request is told, by whatever thread, until the last cache is gone.
static int observed(const std::string& folder) {
  struct telling {
    std::mutex one_at_a_time;
    std::vector<std::string> all;
  } told;
  std::weak_ptr<int> gone;
  {
    const auto alive = std::make_shared<int>(0);
    gone = alive;
    rtc::settings how = rtc::settings::in_memory();
    how.folder(folder + "/observed").observe([&told, alive](const warpcc_rtc_event& event) {
      const std::lock_guard<std::mutex> lock(told.one_at_a_time);
      const bool failed = event.status != WARPCC_RTC_STATUS_OK;
      told.all.push_back(std::string(event.name) + (failed ? " failed" : event.found == WARPCC_RTC_FOUND_MADE ? " made" : " found"));
      const bool fine = std::strlen(event.key) == 64 && event.seconds >= 0 && event.started > 1e9;
      if (!fine || failed != (event.error != nullptr)) told.all.push_back("wrong");
      throw 7;
    });
    rtc::cache cache(how);
    how = rtc::settings::in_memory();
    try {
      cache.get_many(requests(3, 1));
      CHECK(!"it compiles");
    } catch (const rtc::error&) {
    }
    cache.get_many(requests(1, 1));
  }
  CHECK(gone.expired());
  std::sort(told.all.begin(), told.all.end());
  CHECK((told.all == std::vector<std::string>{"m0 found", "m0 made", "m1 failed", "m2 made"}));
  // What is refused is released.
  bool released = false;
  const auto release = [](void* user) { *static_cast<bool*>(user) = true; };
  CHECK(warpcc_rtc_settings_observe(rtc::settings::in_memory().get(), nullptr, &released, release) == WARPCC_RTC_STATUS_INVALID);
  CHECK(released);
  return 0;
}

static int run(const std::string& folder) {
  CHECK(observed(folder) == 0);
  rtc::cache cache(rtc::settings::in_memory().folder(folder + "/kept"));
  std::size_t calls = 0, failed = 0;
  const auto count = [&](std::size_t, std::size_t total, std::string_view, warpcc_rtc_status status) {
    ++calls;
    failed += status != WARPCC_RTC_STATUS_OK;
    return total == 5;
  };
  try {
    cache.get_many(requests(5, 2), count, 2);
    CHECK(!"it compiles");
  } catch (const rtc::error& error) {
    CHECK(error.status() == WARPCC_RTC_STATUS_COMPILE);
    CHECK(std::strstr(error.what(), "src/many.cu:1: ") != nullptr);
  }
  CHECK(calls == 5 && failed == 1);
  // The others were kept.
  std::vector<rtc::image> images = cache.get_many(requests(2, 2));
  CHECK(images.size() == 2 && images[1].found() == WARPCC_RTC_FOUND_MEMORY);
  CHECK(images[0].bytes().substr(0, 2) == "//" && cache.get_many({}).empty());
  // What a callback throws comes out, and cancels the rest.
  try {
    cache.get_many(requests(64, 64), [](std::size_t, std::size_t, std::string_view, warpcc_rtc_status) -> bool { throw 7; }, 1);
    CHECK(!"nothing is thrown");
  } catch (int thrown) {
    CHECK(thrown == 7);
  }
  CHECK(cache.counts().made < 64);
  // What is kept there is a pack of a cache with nothing of its own; one that is not there is a remark.
  rtc::cache other(rtc::settings::in_memory().folder(folder + "/empty").pack(folder + "/kept").pack("/no/such.warpcc-pack"));
  images = other.get_many(requests(2, 2));
  CHECK(images[0].found() == WARPCC_RTC_FOUND_DISK);
  CHECK(other.remarks().find("/no/such.warpcc-pack") != std::string::npos);
  // A kernel's file is set once.
  rtc::kernel kernel(cache, "", "m", "text");
  kernel.file("a.cu");
  try {
    kernel.file("b.cu");
    CHECK(!"it was set twice");
  } catch (const rtc::error& error) {
    CHECK(error.status() == WARPCC_RTC_STATUS_INVALID);
  }
  std::puts("done");
  return 0;
}

int main(int, char** arguments) try {
  return run(arguments[1]);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
