// Names the route of the request that an interrupted thread works for.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "weir/loop/contract/detail/profiler.hpp"

namespace weir::profile {

/// RouteLabels finds the route of a request in a signal handler. It has to expect that the request
/// has just been destroyed, so it follows no pointer itself. The kernel copies the memory instead
/// (os::copy_own_memory()). Only the trace context of a server's request has the right address of a
/// virtual table in its first word.
///
/// A label stands for the name of a route, which is copied for each sample. A route may be removed,
/// and another one may have its address before the profile ends.
/// Threads: read() on each sampled thread, text() on any thread.
class RouteLabels final : public loop::LabelReader {
 public:
  static constexpr std::size_t routes_max = 256;      ///< further names of a thread have no label
  static constexpr std::size_t name_bytes_max = 118;  ///< the end of a longer name is cut off

  /// `example` is the trace context of a running request, which shows how such objects lie in
  /// memory; there are no labels if it is none.
  RouteLabels(std::size_t threads, const TraceContext* example);

  /// Returns 0 if `thread` is too high.
  std::uintptr_t read(std::size_t thread, const TraceContext* trace) noexcept override;
  /// Returns the text of a label that read() returned: "GET /users/{id}". Empty for 0.
  std::string_view text(std::size_t thread, std::uintptr_t label) const noexcept;

 private:
  /// Places of what is read, in bytes from the beginning of the object.
  struct Layout {
    std::uintptr_t type = 0;  // first word of the trace context of a request
    std::size_t route = 0;    // pointer to the route, in the trace context
    std::size_t method = 0;   // std::string in the route
    std::size_t pattern = 0;  // std::string in the route
  };
  // The members have no first values, so that the kernel provides no memory for unused names.
  struct Name {
    std::uint8_t size;
    std::array<char, name_bytes_max> bytes;

    std::string_view text() const noexcept { return {bytes.data(), size}; }
  };
  struct Thread {
    std::atomic<std::size_t> count{0};
    std::array<Name, routes_max + 1> names;  // with one that read() may always write
  };

  static std::optional<Layout> layout_of(const TraceContext* example);
  bool read_name(std::uintptr_t route, Name& name) const noexcept;

  std::optional<Layout> layout_;
  std::size_t thread_count_;
  std::unique_ptr<Thread[]> threads_;
};

}  // namespace weir::profile
