/// warpcc_rtc.h for C++17: handles that free themselves, errors as exceptions. Nothing here but inline code.
#ifndef WARPCC_RTC_HPP
#define WARPCC_RTC_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warpcc_rtc.h"

namespace warpcc::rtc {

/// What a function failed with; `what()` is the library's text.
class error : public std::runtime_error {
 public:
  error(warpcc_rtc_status status, std::uint32_t driver, const char* text)
      : std::runtime_error(text), status_(status), driver_(driver) {}
  warpcc_rtc_status status() const noexcept { return status_; }
  /// The driver's number (CUresult), or 0.
  std::uint32_t driver() const noexcept { return driver_; }

 private:
  warpcc_rtc_status status_;
  std::uint32_t driver_;
};

inline void check(warpcc_rtc_status status) {
  if (status != WARPCC_RTC_STATUS_OK)
    throw error(status, warpcc_rtc_error_driver(), warpcc_rtc_error_text());
}

namespace detail {
template <class T, void (*Free)(T*)>
struct deleter {
  void operator()(T* handle) const noexcept { Free(handle); }
};
template <class T, void (*Free)(T*)>
using owner = std::unique_ptr<T, deleter<T, Free>>;

/// Calls a function of C whose last argument is where the handle goes.
template <class Owner, class Function, class... Arguments>
Owner make(Function function, Arguments... arguments) {
  typename Owner::pointer handle = nullptr;
  check(function(arguments..., &handle));
  return Owner(handle);
}
}  // namespace detail

using cancellation = detail::owner<warpcc_rtc_cancellation, warpcc_rtc_cancel_free>;
using plan = detail::owner<warpcc_rtc_plan, warpcc_rtc_plan_free>;

/// Where a cache keeps images, and with whom it shares. One that nobody made is null: the environment's.
class settings {
 public:
  settings() = default;
  explicit settings(warpcc_rtc_settings* handle) : handle_(handle) {}
  /// Everything in memory, and nothing else.
  static settings in_memory() { return settings(detail::make<owner>(warpcc_rtc_settings_new).release()); }
  /// As the process's environment has them.
  static settings of_environment() {
    return settings(detail::make<owner>(warpcc_rtc_settings_from_environment).release());
  }
  settings& folder(const std::string& path, std::uint64_t max_size = 0, bool readonly = false) {
    check(warpcc_rtc_settings_add_folder(get(), path.c_str(), max_size, readonly));
    return *this;
  }
  /// A pack of ready-made images, or a folder like those of a cache: looked into after the folders, only read.
  settings& pack(const std::string& path) {
    check(warpcc_rtc_settings_add_pack(get(), path.c_str()));
    return *this;
  }
  settings& memory(std::uint64_t bytes) {
    check(warpcc_rtc_settings_memory(get(), bytes));
    return *this;
  }
  /// Shared caches behind the folders, named as WARPCC_REMOTE names them.
  settings& remote(const std::string& caches) {
    check(warpcc_rtc_settings_remote(get(), caches.c_str()));
    return *this;
  }
  /// Those that WARPCC_REMOTE or the settings file names.
  settings& remote() {
    check(warpcc_rtc_settings_remote(get(), nullptr));
    return *this;
  }
  /// Calls `told` after each request of the caches that are opened with these settings: each hit, miss and error. Any thread
  /// may call it at any time; it is kept until the last of these caches is gone. What it throws is dropped.
  settings& observe(std::function<void(const warpcc_rtc_event&)> told) {
    using function = std::function<void(const warpcc_rtc_event&)>;
    const warpcc_rtc_observer call = [](void* user, const warpcc_rtc_event* event) {
      try {
        (*static_cast<function*>(user))(*event);
      } catch (...) {
      }
    };
    const warpcc_rtc_release release = [](void* user) { delete static_cast<function*>(user); };
    check(warpcc_rtc_settings_observe(get(), call, new function(std::move(told)), release));
    return *this;
  }
  warpcc_rtc_settings* get() const noexcept { return handle_.get(); }

 private:
  using owner = detail::owner<warpcc_rtc_settings, warpcc_rtc_settings_free>;
  owner handle_;
};

/// A compiled image.
class image {
 public:
  explicit image(warpcc_rtc_image* handle) : handle_(handle) {}
  std::string_view bytes() const {
    const void* bytes = nullptr;
    std::size_t length = 0;
    check(warpcc_rtc_image_bytes(get(), &bytes, &length));
    return {static_cast<const char*>(bytes), length};
  }
  std::string_view log() const { return warpcc_rtc_image_log(get()); }
  std::string_view target() const { return warpcc_rtc_image_target(get()); }
  warpcc_rtc_found found() const { return warpcc_rtc_image_found(get()); }
  std::string lowered_name(const std::string& expression) const {
    const char* name = nullptr;
    check(warpcc_rtc_image_lowered_name(get(), expression.c_str(), &name));
    return name;
  }
  warpcc_rtc_image* get() const noexcept { return handle_.get(); }

 private:
  detail::owner<warpcc_rtc_image, warpcc_rtc_image_free> handle_;
};

/// Headers and LTO-IR that were embedded into the program, by CMake's warpcc_rtc_embed.
class bundle {
 public:
  bundle(const void* bytes, std::size_t length)
      : handle_(detail::make<decltype(handle_)>(warpcc_rtc_bundle_open, bytes, length)) {}
  std::string digest() const {
    char digest[65];
    check(warpcc_rtc_bundle_digest(get(), digest, sizeof digest, nullptr));
    return digest;
  }
  warpcc_rtc_bundle* get() const noexcept { return handle_.get(); }

 private:
  detail::owner<warpcc_rtc_bundle, warpcc_rtc_bundle_free> handle_;
};

/// A program to compile.
class request {
 public:
  request(const std::string& name, std::string_view source, const std::string& target)
      : handle_(detail::make<decltype(handle_)>(warpcc_rtc_request_new, name.c_str(), source.data(),
                                                source.size(), target.c_str())) {}
  request& preamble(const std::string& name, std::string_view text) {
    check(warpcc_rtc_request_add_preamble(get(), name.c_str(), text.data(), text.size()));
    return *this;
  }
  request& header(const std::string& name, std::string_view text) {
    check(warpcc_rtc_request_add_header(get(), name.c_str(), text.data(), text.size()));
    return *this;
  }
  /// Its headers can be included, and its LTO-IR is linked with what a cache makes.
  request& bundle(const rtc::bundle& embedded) {
    check(warpcc_rtc_request_add_bundle(get(), embedded.get()));
    return *this;
  }
  request& include_folder(const std::string& folder) {
    check(warpcc_rtc_request_add_include_folder(get(), folder.c_str()));
    return *this;
  }
  request& name(const std::string& expression) {
    check(warpcc_rtc_request_add_name(get(), expression.c_str()));
    return *this;
  }
  request& option(const std::string& option) {
    check(warpcc_rtc_request_add_option(get(), option.c_str()));
    return *this;
  }
  /// The file that the source is from: errors and debug information name it, and it decides nothing else.
  request& file(const std::string& path) {
    check(warpcc_rtc_request_file(get(), path.c_str()));
    return *this;
  }
  warpcc_rtc_request* get() const noexcept { return handle_.get(); }

 private:
  detail::owner<warpcc_rtc_request, warpcc_rtc_request_free> handle_;
};

/// A GPU with a context.
class device {
 public:
  /// The GPU number `ordinal`, with its primary context.
  explicit device(std::uint32_t ordinal)
      : handle_(detail::make<decltype(handle_)>(warpcc_rtc_device_open, ordinal)) {}
  /// The GPU of the context that is current on this thread.
  static device of_current_context() {
    device found;
    found.handle_ = detail::make<decltype(handle_)>(warpcc_rtc_device_of_current_context);
    return found;
  }
  std::uint32_t capability() const {
    std::uint32_t capability = 0;
    check(warpcc_rtc_device_capability(get(), &capability));
    return capability;
  }
  warpcc_rtc_device* get() const noexcept { return handle_.get(); }

 private:
  device() = default;
  detail::owner<warpcc_rtc_device, warpcc_rtc_device_free> handle_;
};

/// A kernel on a GPU.
class function {
 public:
  explicit function(warpcc_rtc_function* handle) : handle_(handle) {}
  /// Starts it on a stream and does not wait. The arguments must have the kernel's own types.
  template <class... Arguments>
  void operator()(const warpcc_rtc_shape& shape, CUstream_st* stream, Arguments... arguments) const {
    void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
    check(warpcc_rtc_function_launch(get(), &shape, stream, pointers, sizeof...(arguments)));
  }
  /// The driver's CUfunction.
  CUfunc_st* cuda() const noexcept { return warpcc_rtc_function_cuda(get()); }
  warpcc_rtc_function* get() const noexcept { return handle_.get(); }

 private:
  detail::owner<warpcc_rtc_function, warpcc_rtc_function_free> handle_;
};

/// Kernels as text in, images and functions out, each compiled once.
class cache {
 public:
  /// With this machine's NVRTC, and the environment's settings where none are given.
  explicit cache(const settings& how = {}, const request* common = nullptr)
      : handle_(detail::make<decltype(handle_)>(warpcc_rtc_cache_open, nullptr, how.get(),
                                                common ? common->get() : nullptr)) {}
  image get(const request& what, const warpcc_rtc_limits* limits = nullptr) const {
    warpcc_rtc_image* found = nullptr;
    check(warpcc_rtc_cache_get(get(), what.get(), limits, &found));
    return image(found);
  }
  /// Called once for each image that is done: how many are, of how many, the name of this one and its status. False cancels
  /// the rest.
  using progress = std::function<bool(std::size_t done, std::size_t total, std::string_view name, warpcc_rtc_status status)>;
  /// The images of all requests, in their order, looked up and compiled by `threads` threads; 0 for as many as there are
  /// processors. Where one fails, the others are made and kept all the same, and then the first error is thrown. What
  /// `told` throws cancels the rest and comes out of here.
  std::vector<image> get_many(const std::vector<request>& what, const progress& told = {}, std::size_t threads = 0,
                              const warpcc_rtc_limits* limits = nullptr) const {
    std::vector<const warpcc_rtc_request*> requests;
    for (const request& one : what) requests.push_back(one.get());
    std::vector<warpcc_rtc_image*> found(what.size(), nullptr);
    struct listener {
      const progress& told;
      std::exception_ptr thrown;
    } listens{told, nullptr};
    const warpcc_rtc_progress call = [](void* user, std::size_t done, std::size_t total, const char* name,
                                                 warpcc_rtc_status status) -> std::int32_t {
      auto& listens = *static_cast<listener*>(user);
      try {
        return listens.told(done, total, name, status);
      } catch (...) {
        listens.thrown = std::current_exception();
        return 0;
      }
    };
    const warpcc_rtc_status status =
        warpcc_rtc_cache_get_many(get(), requests.data(), requests.size(), threads, limits, told ? call : nullptr,
                                  &listens, found.data());
    std::vector<image> images;
    images.reserve(found.size());
    for (warpcc_rtc_image* one : found) images.emplace_back(one);
    if (listens.thrown) std::rethrow_exception(listens.thrown);
    check(status);
    return images;
  }
  function get_function(const std::string& parameters, const std::string& name, std::string_view source,
                        const device& gpu, const warpcc_rtc_limits* limits = nullptr) const {
    warpcc_rtc_function* found = nullptr;
    check(warpcc_rtc_cache_get_function(get(), parameters.c_str(), name.c_str(), source.data(), source.size(),
                                        gpu.get(), limits, &found));
    return function(found);
  }
  std::string target_for(std::uint32_t capability) const {
    char target[32];
    check(warpcc_rtc_cache_target_for(get(), capability, target, sizeof target, nullptr));
    return target;
  }
  warpcc_rtc_counts counts() const {
    warpcc_rtc_counts counts;
    check(warpcc_rtc_cache_counts(get(), &counts));
    return counts;
  }
  std::string remarks() const {
    std::size_t length = 0;
    check(warpcc_rtc_cache_remarks(get(), nullptr, 0, &length));
    std::string remarks(length + 1, '\0');
    check(warpcc_rtc_cache_remarks(get(), remarks.data(), remarks.size(), &length));
    remarks.resize(length < remarks.size() ? length : remarks.size() - 1);
    return remarks;
  }
  /// Waits for uploads to shared caches, at most so long. True if nothing waits any more.
  bool flush(std::uint64_t timeout_ms) const {
    std::int32_t waiting = 0;
    check(warpcc_rtc_cache_flush(get(), timeout_ms, &waiting));
    return waiting == 0;
  }
  warpcc_rtc_cache* get() const noexcept { return handle_.get(); }

 private:
  detail::owner<warpcc_rtc_cache, warpcc_rtc_cache_free> handle_;
};

/// A kernel whose texts are read and hashed once: getting its function again costs well under a microsecond.
class kernel {
 public:
  kernel(const cache& from, const std::string& parameters, const std::string& name, std::string_view source)
      : handle_(detail::make<decltype(handle_)>(warpcc_rtc_kernel_new, from.get(), parameters.c_str(),
                                                name.c_str(), source.data(), source.size())) {}
  /// The file that the source is from, set once: errors name it, and it decides nothing else.
  kernel& file(const std::string& path) {
    check(warpcc_rtc_kernel_file(handle_.get(), path.c_str()));
    return *this;
  }
  rtc::function function(const device& gpu, const warpcc_rtc_limits* limits = nullptr) const {
    warpcc_rtc_function* found = nullptr;
    check(warpcc_rtc_kernel_function(handle_.get(), gpu.get(), limits, &found));
    return rtc::function(found);
  }

 private:
  detail::owner<warpcc_rtc_kernel, warpcc_rtc_kernel_free> handle_;
};

}  // namespace warpcc::rtc

#endif
