// The WebSockets that connections of a server have become.
#pragma once

#include "weir/base/detail/counter.hpp"
#include "weir/loop/loop.hpp"
#include "weir/task/task.hpp"

namespace weir {
class Scope;
}

namespace weir::http {

/// Keeps the scope of the connections open while connections are WebSockets, which are no tasks.
/// Threads: the loop's.
class OpenWebSockets {
 public:
  /// `open` is ServerCounters::websockets_open.
  OpenWebSockets(Loop& loop, const weir::detail::Counter& open) noexcept
      : loop_(loop), open_(open) {}
  /// Keeps the scope open until no WebSocket is open. At least one is open now.
  /// Errors: throws std::bad_alloc.
  void keep_open(Scope& connections);
  void on_closed() noexcept;

 private:
  class AllClosedAwaiter;
  Task<> wait();

  Loop& loop_;
  const weir::detail::Counter& open_;
  loop::Runnable* waiter_ = nullptr;  // of wait()
  bool waits_ = false;
};

}  // namespace weir::http
