// TCP: listen, accept, connect. The same types serve Unix sockets; see unix_socket.hpp.
#pragma once

#include <coroutine>

#include "weir/base/block_pool.hpp"
#include "weir/base/result.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/stream.hpp"
#include "weir/os/address.hpp"
#include "weir/task/task.hpp"

namespace weir::tcp {

/// A connection of its loop; see weir::Stream. Move-only.
class Stream final : public weir::Stream {
 public:
  /// For listeners and connect(): owns `socket` of the loop's backend.
  Stream(Loop& loop, Socket& socket) noexcept : loop_(&loop), socket_(&socket) {}
  Stream(Stream&& other) noexcept
      : weir::Stream(other), loop_(other.loop_), socket_(std::exchange(other.socket_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept;
  ~Stream() override { close(); }

  /// What is sent leaves at once (TCP_NODELAY); on from the start. Nothing on Unix sockets.
  Result<> set_no_delay(bool on);
  Loop& loop() const noexcept { return *loop_; }

  Result<> finish_writing() override;
  void close() override;
  os::Address peer_address() const override;
  os::Address local_address() const override;
  void watch(HangupWatcher* watcher) override;

 private:
  bool start_receive(ReceiveOperation& operation) override;
  bool start_send(SendOperation& operation) override;
  void cancel_operation(Operation& operation) override;

  Loop* loop_;
  Socket* socket_;
};

class Accept;

/// A listening socket of its loop. One accept at a time (asserted). When the loop drains, the
/// listener stops new handshakes, hands out every connection that is already there or on its way,
/// and then answers Errc::closed. Move-only; destroying it closes it.
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
    bool await_suspend(std::coroutine_handle<Promise> handle) {
      return suspend(handle, handle.promise().context().cancel);
    }
    Result<Stream> await_resume();

   private:
    friend class Listener::State;
    bool suspend(std::coroutine_handle<> handle, CancelSource* cancel);
    static void resume(Runnable& runnable);
    static void ask(CancelNode& node);

    Listener::State& state_;
    std::coroutine_handle<> handle_;
  };
  Awaiter operator co_await() const noexcept { return Awaiter(*state_); }

 private:
  Listener::State* state_;
};

/// A listener of the awaiting task's loop. With port 0 the host chooses one, the same for all
/// loops of a runtime. Errors: the kernel's (EADDRINUSE, EACCES …).
/// Cancel: does not wait.
Task<Result<Listener>> listen(Endpoint endpoint, ListenOptions options = {});

/// A connection to `peer`. Errors: the kernel's (ECONNREFUSED, ETIMEDOUT …), Errc::cancelled.
/// Cancel: gives the attempt up.
Task<Result<Stream>> connect(Endpoint peer);

}  // namespace weir::tcp
