// TraceContext: the piece of work that tasks do, such as one request of a server. Logs name it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace weir {

/// A TraceContext is one piece of work, which several tasks on several threads may share. The
/// address of the TraceContext is passed on to everything that these tasks await or spawn.
/// CurrentActivity::trace() returns it while one of the tasks runs. A program uses it only for
/// output, never for decisions.
/// Threads: const on any thread while tasks work for it.
/// Lifetime: outlives those tasks.
class TraceContext {
 public:
  static constexpr std::size_t id_bytes_max = 128;
  using IdBuffer = std::span<char, id_bytes_max>;

  /// Returns the kind of work in one word: "request".
  virtual std::string_view kind() const noexcept = 0;
  /// Returns an identifier of at most id_bytes_max bytes that differs from all others. It is made
  /// in `buffer` on demand, unless it is stored elsewhere.
  virtual std::string_view id(IdBuffer buffer) const noexcept = 0;
  /// Returns the name of all work of this sort, cut to id_bytes_max bytes: "GET /users/{id}" for a
  /// request. It is made in `buffer` on demand. Empty if there is none.
  virtual std::string_view name(IdBuffer /*buffer*/) const noexcept { return {}; }
  /// Returns an address that has a meaning for the creator. A server returns that of the route of
  /// the request.
  virtual const void* origin() const noexcept { return nullptr; }

 protected:
  ~TraceContext() = default;
};

}  // namespace weir
