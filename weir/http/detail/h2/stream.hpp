// One stream of an HTTP/2 connection: its state, its windows and its priority.
#pragma once

#include <cassert>
#include <cstdint>
#include <limits>

#include "weir/base/detail/list.hpp"
#include "weir/base/detail/state_table.hpp"
#include "weir/http/detail/h2/flow_control.hpp"
#include "weir/http/detail/h2/priority.hpp"

namespace weir::http {

/// An H2Stream is a base or member of the carrier's own object for a request, so that a stream
/// needs one block. The session links it while the stream is open.
/// Threads: those of the session.
/// Lifetime: the carrier calls H2Session::release() before it destroys an accepted stream.
class H2Stream : private weir::detail::ListNode {
 public:
  // The states of RFC 9113 §5.1. A reserved stream does not exist, because Weir pushes none and
  // refuses pushed ones. H means HEADERS, and ES the flag END_STREAM.
  //
  //                         idle
  //                          | send or receive H
  //                          v
  //           receive ES    open    send ES
  //            .-------------+-------------.
  //            v                           v
  //    half_closed_remote          half_closed_local
  //            |                           |
  //            '-----------> closed <------'
  //               send ES            receive ES
  //
  // RST_STREAM of either side closes a stream in any state. A client also closes an idle stream
  // whose HEADERS it never sent.
  enum class State : std::uint8_t {
    idle,                // was never opened, or a client has not sent its head yet
    open,                // both sides may send
    half_closed_remote,  // the peer sends nothing more
    half_closed_local,   // nothing more can be sent
    closed,              // has ended in both directions, or was reset
  };

  /// The length of a body whose Content-Length is not known.
  static constexpr std::uint64_t no_length = std::numeric_limits<std::uint64_t>::max();

  H2Stream() noexcept = default;
  ~H2Stream() { assert(!held_ && "the stream was not released"); }

  /// Returns the identifier, or 0 for a stream that was never opened.
  std::uint32_t id() const noexcept { return id_; }
  State state() const noexcept { return state_; }
  /// Returns true if the peer sends nothing more on the stream.
  bool remote_ended() const noexcept {
    return state_ == State::half_closed_remote || state_ == State::closed;
  }
  /// Returns true if nothing more can be sent on the stream.
  bool local_ended() const noexcept { return state_ >= State::half_closed_local; }
  /// Returns true if the stream has ended in both directions, or was reset.
  bool closed() const noexcept { return state_ == State::closed; }
  /// Returns true if one side has reset the stream.
  bool was_reset() const noexcept { return reset_; }
  Priority priority() const noexcept { return priority_; }
  /// Returns the bytes that the peer allows to be sent on this stream; negative if it has reduced
  /// its initial window.
  std::int32_t send_window() const noexcept { return windows_.send(); }
  /// Returns true if the window of the stream allows the peer to send DATA.
  bool may_receive() const noexcept { return windows_.receive() > 0; }
  /// Returns the bytes of DATA that were received and not yet consumed.
  std::uint32_t unconsumed() const noexcept { return windows_.unconsumed(); }

 private:
  friend class H2Session;
  friend class SendScheduler;
  friend class StreamTable;
  friend weir::detail::List<H2Stream>;
  friend struct H2StreamTest;

  void change(State next) noexcept {
    // `idle` follows `closed`: the carrier uses the object for a further stream.
    static constexpr weir::detail::StateTable<State, 5> table{
        {State::idle, {State::open, State::closed}},
        {State::open, {State::half_closed_remote, State::half_closed_local, State::closed}},
        {State::half_closed_remote, {State::closed}},
        {State::half_closed_local, {State::closed}},
        {State::closed, {State::idle}},
    };
    table.change(state_, next);
  }
  /// Makes the object an idle stream that the session holds.
  void begin(std::uint32_t id, const StreamWindows& windows) noexcept {
    assert(!held_);
    if (state_ != State::idle) change(State::idle);
    id_ = id;
    windows_ = windows;
    body_left_ = no_length;
    priority_ = {};
    reset_ = has_body_ = final_head_ = false;
    held_ = true;
  }
  /// Opens a stream whose HEADERS are sent or were received.
  void open() noexcept { change(State::open); }
  /// Ends the direction of the peer, of a stream whose other direction has not ended.
  void end_remote() noexcept { change(State::half_closed_remote); }
  /// Ends the own direction of a stream whose other direction has not ended.
  void end_local() noexcept { change(State::half_closed_local); }
  void close(bool by_reset) noexcept {
    change(State::closed);
    reset_ = by_reset;
  }

  H2Stream* next_in_bucket_ = nullptr;
  std::uint64_t body_left_ = no_length;  // bytes that Content-Length still announces
  std::uint32_t id_ = 0;
  StreamWindows windows_;
  Priority priority_;
  State state_ = State::idle;
  bool reset_ = false;       // one side has reset the stream
  bool held_ = false;        // from accept() until release()
  bool has_body_ = false;    // has bytes to send; linked, unless its window is used up
  bool final_head_ = false;  // a client has received the final head
};

}  // namespace weir::http
