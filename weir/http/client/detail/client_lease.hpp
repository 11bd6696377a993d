// The right of a request to use one connection of a client's pool.
#pragma once

#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

#include "weir/base/detail/block_pool.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/client/detail/client_origin.hpp"
#include "weir/http/client/detail/pooled_connection.hpp"
#include "weir/http/syntax/url.hpp"
#include "weir/net/any_stream.hpp"
#include "weir/task/sync/semaphore.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

class ClientPool;

/// A ClientLease is the right to use one connection, and that connection. A moved-from lease has no
/// right.
/// Threads: one core's.
class ClientLease {
 public:
  /// Makes the lease of a connection that no pool counts. It is closed after its use.
  explicit ClientLease(BlockPtr<PooledConnection> connection) noexcept
      : connection_(std::move(connection)), state_(State::unpooled) {}
  ClientLease(ClientLease&& other) noexcept;
  ClientLease& operator=(ClientLease&& other) noexcept;
  /// Closes the connection, if there is one.
  ~ClientLease() { release(); }

  /// Takes the idle connection that was used last.
  /// Returns: false if no connection is idle.
  bool take_idle();
  /// Closes the connection, if there is one, and opens another: to the origin, to a proxy, or
  /// through a tunnel.
  /// Errors: ClientError (connect_failed, connect_timed_out, timed_out; those of open_tunnel());
  /// tls::Error; Errc::cancelled.
  /// Cancel: aborts the attempt.
  Task<Result<>> connect(const Url& url, Instant deadline);
  /// Returns the stream of a lease that has a connection.
  Stream& stream() const noexcept { return connection_->stream(); }
  /// Returns true if the server of the connection that connect() has opened speaks HTTP/2.
  bool is_http2() const noexcept { return state_ == State::http2; }
  /// Takes the connection out. It counts as open until ClientPool::on_http2_closed().
  BlockPtr<PooledConnection> take_connection() noexcept {
    change(State::right);
    return std::move(connection_);
  }
  /// Takes the stream of a connection of HTTP/1.1 out, which the pool then does not count any more.
  AnyStream take_stream() noexcept {
    AnyStream stream = connection_->take_stream();
    close_connection();
    return stream;
  }

  /// Gives up the right. The connection becomes idle for at most `idle_max`.
  void release_for_reuse(Duration idle_max);
  /// Gives up the right and closes the connection.
  void release() noexcept;

 private:
  friend ClientPool;
  /// The life of the lease:
  ///
  ///     right ---> opening ---> http2 ---> connected
  ///     right ---> connected ---> right ---> none
  ///
  /// A connection that may be one of HTTP/2 is opened in the state `opening`. Requests to the
  /// origin wait for it in the states `opening` and `http2`; see ClientOrigin::opening. An attempt
  /// that fails and a connection that is taken out or closed lead back to `right`. A release ends
  /// in `none`.
  enum class State : std::uint8_t {
    none,       ///< no right: it was released, or moved from
    unpooled,   ///< no right, but a connection that no pool counts
    right,      ///< the right, or the wait for it, without a connection
    opening,    ///< the connection that is being opened may become one of HTTP/2
    http2,      ///< a new connection of HTTP/2, which is not in the list of its origin yet
    connected,  ///< a connection: an idle one, or a new one that no request waits for
  };

  ClientLease(ClientPool& pool, ClientOrigin& origin) noexcept
      : pool_(&pool), origin_(&origin), state_(State::right) {
    ++origin.users;
  }
  void close_connection() noexcept;
  static void give_up(SemaphorePermit& right, const RequestQueue& waiting) noexcept;
  void change(State next) noexcept;
  /// Returns true if requests to the origin wait for the connection of the lease.
  bool is_awaited() const noexcept { return state_ == State::opening || state_ == State::http2; }
  void begin_opening() noexcept;
  void end_opening(State next) noexcept;
  /// Lets the requests that wait for the connection of HTTP/2 look for it.
  void end_wait_for_http2() noexcept {
    if (state_ == State::http2) end_opening(State::connected);
  }

  ClientPool* pool_ = nullptr;  // nullptr for a connection that no pool counts
  ClientOrigin* origin_ = nullptr;
  SemaphorePermit of_origin_;
  SemaphorePermit of_pool_;
  BlockPtr<PooledConnection> connection_;
  // The end of connect_timeout, if the request has waited for a connection that did not open.
  Instant connect_until_ = never;
  State state_ = State::none;
};

/// The name of HTTP/2 in ALPN (RFC 9113 §3.1).
inline constexpr std::string_view http2_protocol = "h2";

/// Returns the time until `end`; Duration::max() if it is `never`.
inline Duration time_until(Instant end, Instant now) noexcept {
  return end == never ? Duration::max() : end - now;
}

/// Returns the errors that ClientPool::open_stream() has from its own protocol, those of the
/// options and of this machine, and connect_failed for others.
std::error_code connect_error(std::error_code error) noexcept;

}  // namespace weir::http
