// Listening for connections. A drain closes a listener without losing connections in progress.
#pragma once

#include <coroutine>

#include "weir/base/detail/block_pool.hpp"
#include "weir/net/tcp.hpp"

namespace weir::tcp {

class Accept;

/// A listening socket that belongs to one loop. The caller awaits one accept at a time (asserted).
/// Move-only.
///
/// The loops of a runtime that listen on one address balance their connections. A loop with far
/// more connections than the average hands some accepted ones over to the loop with the fewest; see
/// ConnectionBalancer.
///
/// When the loop drains, the listener refuses new handshakes. It returns every connection that is
/// established or in progress, and then Errc::closed.
/// Threads: its loop's.
/// Lifetime: no accept is pending when it is destroyed (asserted). Destroying it closes it.
class Listener {
 public:
  class State;
  explicit Listener(BlockPtr<State> state) noexcept;
  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;
  ~Listener();

  /// Accepts one connection. It retries transient errors. It waits and retries if descriptors or
  /// memory run out.
  /// Returns: a Result<Stream> from `co_await listener.accept()`.
  /// Errors: Errc::closed after a drain, the kernel's if the listener itself has failed;
  /// Errc::cancelled.
  /// Cancel: loses no connection; the next accept returns one that comes later.
  Accept accept() noexcept;
  /// Returns the local address, with the port that the platform chose for port 0.
  os::Address local_address() const;

 private:
  BlockPtr<State> state_;
};

/// The awaitable of Listener::accept().
class [[nodiscard]] Accept {
 public:
  explicit Accept(Listener::State& state) noexcept : state_(&state) {}
  class Awaiter : loop::AcceptOperation, CancelNode {
   public:
    explicit Awaiter(Listener::State& state) noexcept;
    ~Awaiter();
    bool await_ready();
    template <HasContext Promise>
    void await_suspend(std::coroutine_handle<Promise> handle) {
      suspend(handle, handle.promise().context().cancel);
    }
    Result<Stream> await_resume();

   private:
    friend class Listener::State;
    bool complete();
    void suspend(std::coroutine_handle<> handle, CancelSource* cancel);
    static void resume(loop::Runnable& runnable);
    static void on_cancel(CancelNode& node);
    static std::coroutine_handle<> coroutine_of(const CancelNode& node) noexcept {
      return static_cast<const Awaiter&>(node).handle_;
    }
    static constexpr CancelNode::Kind accept_kind{&on_cancel, "accept", &coroutine_of};

    Listener::State& state_;
    std::coroutine_handle<> handle_;
    CancelSource* cancel_ = nullptr;
    loop::Socket* stream_ = nullptr;
    unsigned handed_over_ = 0;  // connections handed over in this turn
  };
  Awaiter operator co_await() const noexcept { return Awaiter(*state_); }

 private:
  Listener::State* state_;
};

/// Opens a listener of the awaiting task's loop. The platform chooses a port for port 0, the same
/// for all loops of a runtime. A loop that listens on port 0 again while it has that listener gets
/// another port, so all loops open their listeners in the same order. An address in use is retried
/// for about a second, because its current owner may be about to exit; see BindRetry. It fails
/// immediately if a listener of this runtime has the address.
/// Errors: the kernel's (EADDRINUSE, EACCES …), Errc::cancelled.
/// Cancel: stops retrying.
Task<Result<Listener>> listen(Endpoint endpoint, ListenOptions options = {});

}  // namespace weir::tcp
