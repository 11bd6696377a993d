// Names the route of the request that an interrupted thread works for.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "weir/loop/contract/detail/profiler.hpp"

namespace weir::profile {

/// RouteLabels finds the route of a request in a signal handler. It has to expect that the request
/// has just been destroyed, so it follows no pointer itself. The kernel copies the memory instead
/// (os::copy_own_memory()). Only the trace context of a server's request has the right address of a
/// virtual table in its first word.
///
/// The name of a route is copied when the route is seen for the first time, because it may be
/// removed before the profile ends.
/// Threads: read() on the thread of each core, text() on any thread.
class RouteLabels final : public loop::LabelReader {
 public:
  static constexpr std::size_t routes_max = 256;      ///< further routes of a core have no label
  static constexpr std::size_t name_bytes_max = 118;  ///< the end of a longer name is cut off

  /// `example` is the trace context of a running request, which shows how such objects lie in
  /// memory; there are no labels if it is none.
  RouteLabels(std::size_t cores, const TraceContext* example);

  std::uintptr_t read(std::size_t core, const TraceContext* trace) noexcept override;
  /// Returns the text of a label that read() returned: "GET /users/{id}". Empty for 0.
  std::string_view text(std::size_t core, std::uintptr_t label) const noexcept;

 private:
  /// Places of what is read, in bytes from the beginning of the object.
  struct Layout {
    std::uintptr_t type = 0;  // first word of the trace context of a request
    std::size_t route = 0;    // pointer to the route, in the trace context
    std::size_t method = 0;   // std::string in the route
    std::size_t pattern = 0;  // std::string in the route
  };
  struct Name {
    std::uintptr_t route = 0;
    std::uint8_t size = 0;
    std::array<char, name_bytes_max> text;
  };
  struct Core {
    std::atomic<std::size_t> count{0};
    std::array<Name, routes_max> names;
  };

  static std::optional<Layout> layout_of(const TraceContext* example);
  bool read_name(std::uintptr_t route, Name& name) const noexcept;

  std::optional<Layout> layout_;
  std::vector<std::unique_ptr<Core>> cores_;
};

}  // namespace weir::profile
