// A connection of a client that carries one request at a time, and waits in the pool between two.
#pragma once

#include <cstdint>
#include <utility>

#include "weir/base/detail/list.hpp"
#include "weir/base/time.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/any_stream.hpp"

namespace weir::http {

class ClientPool;
struct ClientOrigin;

/// A connection of a client, in use or idle. No operation is pending on an idle connection: the
/// loop reports any byte, the end of the stream and a reset to the observer. The timer stays armed
/// while the connection is in use, so that a request neither starts nor cancels it.
/// Threads: its loop's.
class PooledConnection : loop::HangupObserver, loop::Timer {
 public:
  /// A place in the list of an origin or of the pool.
  struct Node : weir::detail::ListNode {
    explicit Node(PooledConnection& owner) noexcept : connection(owner) {}
    PooledConnection& connection;
  };

  /// `stream` was connected now.
  explicit PooledConnection(AnyStream stream) noexcept;

  Stream& stream() noexcept { return *stream_; }
  AnyStream take_stream() noexcept { return std::move(stream_); }
  /// Returns true if the certificate of the server no longer proves its identity, so that the
  /// connection takes no new request; see TlsInfo::proof_ended().
  bool proof_ended() const noexcept;

 private:
  friend ClientPool;

  /// The life of the connection:
  ///
  ///     in_use <---> idle ---> dead
  ///
  /// It is closed in any state.
  enum class State : std::uint8_t {
    in_use,  ///< a lease has it
    idle,    ///< waits for the next request in the lists of its origin and of the pool
    dead,    ///< input or an end has arrived meanwhile; its timer closes it
  };

  void change(State next) noexcept;

  ClientPool* pool_ = nullptr;      // that of a connection that is not in use
  ClientOrigin* origin_ = nullptr;  // that of a connection that is not in use
  Node in_origin_{*this};           // also in the list of dead ones
  Node in_pool_{*this};
  State state_ = State::in_use;
  Instant opened_;
  Instant idle_until_ = never;
  AnyStream stream_;
};

}  // namespace weir::http
