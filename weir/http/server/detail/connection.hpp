// A connection that is being served, with its idle state and its active state.
#pragma once

#include <cassert>
#include <cstdint>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/http/server/detail/connection_io.hpp"
#include "weir/http/server/detail/deadline_stream.hpp"
#include "weir/http/server/detail/request_loop.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/cancel.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

// One HTTP/1.1 connection from its first byte to its last.

/// Serves the connection until the peer leaves, the peer breaks a rule, or the server drains. No
/// action of the peer is an error of the task. The permit is released when the stream is closed
/// or moved to LingeringStreams.
/// Cancel: cancels the handlers, waits for them and closes the connection.
Task<> serve_connection(ServerState::ConnectionPermit permit, tcp::Stream stream);

/// Answers 503 to a connection beyond the limit, lingers and closes it. A lingering connection
/// holds no buffer.
/// Cancel: closes immediately.
Task<> reject_connection(ServerState& server, tcp::Stream stream);

/// The state that a connection has only while it has bytes to work on.
struct ActiveState : ConnectionIo {
  ActiveState(DeadlineStream& timed, ServerState& server, const Context& context,
              Buffer bytes) noexcept
      : ConnectionIo(timed, server.limits(), std::move(bytes)),
        request_loop(server, *this, context) {}

  RequestLoop request_loop;
  static constexpr std::uint64_t none = static_cast<std::uint64_t>(-1);
  std::uint64_t head_number = none;  ///< the head that is being read
  Instant head_started{};            ///< arrival of its first bytes
};

/// The whole state of an idle connection; there may be very many. It is a parameter of the
/// coroutine that serves it, and can be moved until open(), so that the frame holds the stream
/// only once. The stream is closed before the permit is released.
/// Threads: its loop's.
/// Lifetime: its server outlives it.
class Connection final : public DrainableConnection,
                         ServerState::ConnectionPermit,
                         public DeadlineStream {
 public:
  Connection(ServerState::ConnectionPermit permit, tcp::Stream stream) noexcept
      : ConnectionPermit(std::move(permit)), DeadlineStream(std::move(stream)) {}
  Connection(Connection&& other) noexcept
      : DrainableConnection(),
        ConnectionPermit(std::move(other)),
        DeadlineStream(std::move(other)) {
    assert(!other.is_open());
  }
  ~Connection();

  /// Registers the connection for the drain; it must not be moved any more. `cancel` is the
  /// cancel source of the task that serves it.
  void open(CancelSource* cancel) noexcept;
  bool cancelled() const noexcept { return cancel_ != nullptr && cancel_->cancelled(); }
  const Limits& limits() const noexcept { return server().limits(); }

  void drain() override;

  // Both awaiters work out of line, so that their temporaries do not lie in the awaiting frame.
  /// See receive().
  class ReadAwaiter : public Read::Awaiter {
   public:
    explicit ReadAwaiter(Connection& connection) noexcept
        : Awaiter(connection.stream()), connection_(connection) {}
    bool await_ready();
    RequestLoop::Action await_resume();

   private:
    Connection& connection_;
  };
  /// Waits for bytes, begins an active state for them and answers all that needs no waiting:
  /// `co_await connection.receive()`.
  /// Returns: the next action; the way to close if there is no active state.
  /// Cancel: that of Stream::read().
  ReadAwaiter receive() noexcept { return ReadAwaiter(*this); }

  /// See send_responses().
  class WriteAwaiter : public Write::Awaiter {
   public:
    WriteAwaiter(Connection& connection, RequestLoop::Action action) noexcept
        : Awaiter(connection.stream(), connection.active_state().output().bytes(), {}, false),
          connection_(connection),
          action_(action) {}
    bool await_ready();
    RequestLoop::Action await_resume();

   private:
    Connection& connection_;
    RequestLoop::Action action_;
  };
  /// Sends the output of the active state and ends that state: `co_await
  /// connection.send_responses(action)`.
  /// Returns: `action`, or Action::abort if the send failed.
  /// Cancel: that of Stream::write().
  WriteAwaiter send_responses(RequestLoop::Action action) noexcept { return {*this, action}; }

  bool is_active() const noexcept { return io() != nullptr; }
  /// Returns the active state of an active connection.
  ActiveState& active_state() const noexcept { return static_cast<ActiveState&>(*io()); }
  /// Ends the active state; all requests are answered or the connection is broken.
  void deactivate() noexcept;

  /// Moves the stream to LingeringStreams, where the peer can still read the last response.
  void linger_detached() noexcept;

  /// Returns the deadline of the head that is being read, counted from the arrival of its first
  /// bytes.
  Instant head_deadline() noexcept;

 private:
  bool is_open() const noexcept { return DrainableConnection::linked(); }
  Instant request_deadline() const noexcept;

  CancelSource* cancel_ = nullptr;
};

}  // namespace weir::http
