// Connections that servers have apart from those of all other servers.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

#include "weir/loop/loop.hpp"

namespace weir::http {

/// Connections for one server on all cores, apart from those of the other servers. The server thus
/// answers even if the others have all their connections open. A limit of the others that comes
/// from the number of descriptors is lower by this number while a server has the reserve.
/// Threads: any.
/// Lifetime: outlives its servers.
class ConnectionReserve {
 public:
  explicit ConnectionReserve(std::size_t size) noexcept : size_(size) {}
  std::size_t size() const noexcept { return size_; }
  /// Returns the number of open connections, which only the permits of its servers change.
  std::atomic<std::size_t>& open() noexcept { return open_; }

  /// Returns the sum of all reserves that servers of the group of `loop` have.
  /// Errors: throws std::bad_alloc.
  static const std::atomic<std::size_t>& sum_of(Loop& loop) { return Sum::of(loop).size; }

  /// A use of a reserve by the server of one core; it may have none.
  class Use {
   public:
    Use(ConnectionReserve* reserve, Loop& loop);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ConnectionReserve* reserve() const noexcept { return reserve_; }

   private:
    ConnectionReserve* reserve_;
    Loop& loop_;
  };

 private:
  struct Sum {
    static Sum& of(Loop& loop) { return loop.group().slots().get<Sum>(); }
    std::mutex mutex;                  // guards `servers` of all reserves of the group
    std::atomic<std::size_t> size{0};  // relaxed: only the number matters
  };

  std::size_t size_;
  std::size_t servers_ = 0;
  std::atomic<std::size_t> open_{0};  // relaxed: only the number matters
};

}  // namespace weir::http
