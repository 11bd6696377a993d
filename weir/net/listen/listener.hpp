// Listening for connections, and closing without hurting those that are on their way.
#pragma once

#include <coroutine>

#include "weir/base/detail/block_pool.hpp"
#include "weir/net/tcp.hpp"

namespace weir::tcp {

class Accept;

/// A listening socket of its loop. One accept at a time (asserted). Where the loops of a runtime
/// listen on one address and this one has far more connections than they have on average, some that
/// it accepts go to the listener of the one with the fewest instead; see Balance. When the loop
/// drains, the listener stops new handshakes, hands out every connection that is already there or
/// on its way, and then answers Errc::closed. Move-only; destroying it closes it.
class Listener {
 public:
  class State;
  explicit Listener(BlockPtr<State> state) noexcept;
  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;
  ~Listener();

  /// `co_await listener.accept()`: a Result<Stream>. What is transient is retried inside; when
  /// descriptors or memory run out it waits and goes on. Errors: Errc::closed after a drain.
  /// Cancel: nothing is lost; a connection that comes later is given to the next accept.
  Accept accept() noexcept;
  /// With the port that the host chose, where it was asked to.
  os::Address local_address() const;

 private:
  BlockPtr<State> state_;
};

/// See Listener::accept().
class [[nodiscard]] Accept {
 public:
  explicit Accept(Listener::State& state) noexcept : state_(&state) {}
  class Awaiter : AcceptOperation, CancelNode {
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
    bool settled();
    void suspend(std::coroutine_handle<> handle, CancelSource* cancel);
    static void resume(Runnable& runnable);
    static void ask(CancelNode& node);

    Listener::State& state_;
    std::coroutine_handle<> handle_;
    CancelSource* cancel_ = nullptr;
    Socket* stream_ = nullptr;
    unsigned handed_over_ = 0;  // in this turn
  };
  Awaiter operator co_await() const noexcept { return Awaiter(*state_); }

 private:
  Listener::State* state_;
};

/// A listener of the awaiting task's loop. With port 0 the host chooses one, the same for all
/// loops of a runtime. An address that is taken is tried for a second, for whoever has it may be
/// about to go; see AddressPatience. Errors: the kernel's (EADDRINUSE, EACCES …),
/// Errc::cancelled. Cancel: gives up.
Task<Result<Listener>> listen(Endpoint endpoint, ListenOptions options = {});

}  // namespace weir::tcp
