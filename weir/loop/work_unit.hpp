// What tasks do their work for, one request of a server for example: so that a log can name it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace weir {

/// A piece of work that many tasks may do parts of, on several cores and in pools. Its address
/// rides with their cancellation (CancelSource::unit()), whatever they await or spawn; while one of
/// them runs, Running::unit() tells it. What a program does never depends on it, only what it says.
/// Threads: const for all while tasks work for it. Lifetime: outlives those tasks.
class WorkUnit {
 public:
  static constexpr std::size_t id_bytes_max = 128;
  using IdRoom = std::span<char, id_bytes_max>;

  /// What it is, in a word: "request".
  virtual std::string_view kind() const noexcept = 0;
  /// What tells it from all others, of at most id_bytes_max bytes. It is made only when it is asked
  /// for: in `room`, unless it is kept somewhere.
  virtual std::string_view id(IdRoom room) const noexcept = 0;
  /// What it is one of: an address that means something to who made it (a server: that of the
  /// route whose request it is).
  virtual const void* of() const noexcept { return nullptr; }

 protected:
  ~WorkUnit() = default;
};

}  // namespace weir
