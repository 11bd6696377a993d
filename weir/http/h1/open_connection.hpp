// A connection that is being served: what is kept while it is idle, and what only while it works.
#pragma once

#include <cassert>
#include <cstdint>
#include <utility>

#include "weir/base/buffer.hpp"
#include "weir/http/h1/exchange.hpp"
#include "weir/http/server/detail/deadline_stream.hpp"
#include "weir/http/server/detail/connection_io.hpp"
#include "weir/http/server_core.hpp"
#include "weir/net/tcp.hpp"
#include "weir/task/cancel.hpp"

namespace weir::http {

/// What a connection has only while it has bytes to work on.
struct Activity : Transport {
  Activity(TimedStream& timed, ServerCore& server, const Context& context, Buffer bytes) noexcept
      : Transport(timed, server.limits(), std::move(bytes)), exchange(server, *this, context) {}

  Exchange exchange;
  static constexpr std::uint64_t none = static_cast<std::uint64_t>(-1);
  std::uint64_t head_number = none;  ///< of the head that is being read
  Instant head_started{};            ///< when its first bytes were seen
};

/// All that there is of a connection while it is idle; there may be very many. It is meant to be
/// the parameter of the coroutine that serves it, and can be moved until it is opened: so the
/// stream is in that frame once.
/// Threads: its loop's. Lifetime: its server outlives it.
/// Its place is free again when its stream is closed, for the stream goes first.
class OpenConnection final : public DrainingConnection, ServerCore::Place, public TimedStream {
 public:
  OpenConnection(ServerCore::Place place, tcp::Stream stream) noexcept
      : Place(std::move(place)), TimedStream(std::move(stream)) {}
  OpenConnection(OpenConnection&& other) noexcept
      : DrainingConnection(), Place(std::move(other)), TimedStream(std::move(other)) {
    assert(!other.is_open());
  }
  ~OpenConnection();

  /// From now on it stays where it is, and hears of the drain. `cancel`: of what serves it.
  void open(CancelSource* cancel) noexcept;
  bool cancelled() const noexcept { return cancel_ != nullptr && cancel_->cancelled(); }
  const Limits& limits() const noexcept { return server().limits(); }

  void drain() override;

  // Both awaiters do their part out of line, so that nothing of it lies in the awaiting frame.
  /// See bytes().
  class Arrival : public Read::Awaiter {
   public:
    explicit Arrival(OpenConnection& connection) noexcept
        : Awaiter(connection.stream()), connection_(connection) {}
    bool await_ready();
    Exchange::Next await_resume();

   private:
    OpenConnection& connection_;
  };
  /// `co_await connection.bytes()`: waits for bytes, begins an activity for them and answers what
  /// needs no waiting. Gives what is to be done next; without an activity: how to close.
  /// Cancel: as Stream::read().
  Arrival bytes() noexcept { return Arrival(*this); }

  /// See send_answers().
  class Sending : public Write::Awaiter {
   public:
    Sending(OpenConnection& connection, Exchange::Next next) noexcept
        : Awaiter(connection.stream(), connection.activity().output().bytes(), {}, false),
          connection_(connection),
          next_(next) {}
    bool await_ready();
    Exchange::Next await_resume();

   private:
    OpenConnection& connection_;
    Exchange::Next next_;
  };
  /// `co_await connection.send_answers(next)`: sends what the activity has gathered, and ends it.
  /// Gives `next`, or abort.
  /// Cancel: as Stream::write().
  Sending send_answers(Exchange::Next next) noexcept { return {*this, next}; }

  bool active() const noexcept { return transport() != nullptr; }
  /// While it is active.
  Activity& activity() const noexcept { return static_cast<Activity&>(*transport()); }
  /// All is answered, or the connection is broken: it is idle again.
  void end() noexcept;

  /// All is said: the stream goes to where its peer can still hear it.
  void leave_answer() noexcept;

  /// Of the head that is being read: from the moment when its first bytes were seen.
  Instant head_deadline() noexcept;

 private:
  bool is_open() const noexcept { return DrainingConnection::linked(); }
  Instant request_deadline() const noexcept;

  CancelSource* cancel_ = nullptr;
};

}  // namespace weir::http
