// The state behind a Listener: its sockets, and its drain without lost connections.
#pragma once

#include <cstdint>
#include <memory>
#include <system_error>
#include <vector>

#include "weir/loop/detail/listen/shared_listener.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/listen/detail/connection_balancer.hpp"
#include "weir/net/listen/listener.hpp"

namespace weir::tcp {

/// An additional listening socket of a listener. It accepts one connection ahead.
/// Threads: the loop's.
/// Lifetime: open_extra_listener() creates it, and close() ends it.
class ExtraListener : loop::AcceptOperation {
 public:
  /// The loop calls an Observer when take() has a connection, or when no more connections come.
  class Observer {
   public:
    virtual void on_change() = 0;

   protected:
    ~Observer() = default;
  };

  ExtraListener(Loop& loop, loop::Socket& socket, std::shared_ptr<loop::SharedListener> shared,
                Observer& observer);

  /// Begins to accept, unless it has begun already.
  void begin();
  bool has_connection() const noexcept { return state_ == State::holding; }
  /// Returns the accepted connection and accepts the next one. Requires has_connection().
  loop::Descriptor take();

  /// Returns true if another process has the socket open too; see
  /// SharedListener::stays_open_elsewhere().
  bool stays_open_elsewhere() const noexcept { return shared_->stays_open_elsewhere(); }
  bool peer_waits_for_accept() const noexcept { return shared_->peer_waits_for_accept(); }
  /// Takes no more connections from the kernel's queue. take() still returns an accepted one.
  void stop();
  /// Returns true if no more connections come.
  bool ended() const noexcept { return state_ == State::ended; }
  int descriptor() const noexcept { return socket_->descriptor; }

  /// Closes the socket. The owner does not use the object after this call.
  void close();

 private:
  // The life of an extra listener. close() leads from each state to `closed`.
  //
  //   unused --begin()--> accepting --a connection--> holding --take()--> accepting
  //   unused --stop()--> ended
  //   accepting --an error, or no more connections after stop()--> ended
  enum class State : std::uint8_t {
    unused,     // nothing has been accepted yet
    accepting,  // the loop still has to call on_completed()
    holding,    // a connection waits for take()
    ended,      // no more connections come
    closed,     // the socket is closed; the object is destroyed when the last accept has completed
  };

  void change(State next) noexcept;
  void accept_next();
  void on_accepted();
  static void on_completed(loop::Runnable& self);
  void end();
  void destroy_self();

  Loop& loop_;
  loop::Socket* socket_;
  std::shared_ptr<loop::SharedListener> shared_;
  Observer& observer_;
  State state_ = State::unused;
};

/// Returns an extra listener on `shared`, an element of ListenerRegistry::Listener::additional. The
/// owner ends it with ExtraListener::close(). Errors: the kernel's.
Result<ExtraListener*> open_extra_listener(Loop& loop, std::shared_ptr<loop::SharedListener> shared,
                                           ExtraListener::Observer& observer);

/// The state that a listener shares with its pending accept. It keeps its address when the listener
/// moves.
///
/// Connections come from three sources: the socket, the extra listeners, and other cores through
/// the HandoffQueue. Extra listeners with a connection take turns. An accept returns Errc::closed
/// only after all sources have ended. An accept waits in this class and takes nothing from the
/// socket while the loop pauses accepting.
///
/// A drain ends a socket in one of two ways. A socket of this process alone refuses new connections
/// and is emptied until no connection has come for quiet_period. A socket that another process
/// keeps open is left unchanged, and this process takes no more connections from it. The drain does
/// not affect a listener of listen_through_drain() that is open in this process alone.
class Listener::State final : loop::Timer,
                              DrainObserver,
                              AcceptObserver,
                              HandoffQueue::Receiver,
                              ExtraListener::Observer {
 public:
  /// `through_drain` is true for listen_through_drain().
  State(Loop& loop, loop::Socket& socket, const loop::ListenerRegistry::Listener& listener,
        bool through_drain);
  /// Closes each socket before it reports that this loop no longer accepts from the socket.
  ~State();

  /// Opens the extra listeners. The caller calls it before the first accept.
  /// Errors: those of open_extra_listener().
  Result<> add_extra_listeners(
      const std::vector<std::shared_ptr<loop::SharedListener>>& additional);

  Loop& loop() noexcept { return loop_; }
  loop::Socket& socket() noexcept { return socket_; }

  /// Starts an accept. Returns true if it finished immediately.
  bool begin(loop::AcceptOperation& operation);
  /// The awaiter calls this when its operation has finished and the loop resumes it.
  void on_accept_completed() noexcept;
  void cancel(loop::AcceptOperation& operation);
  /// Returns true if it has completed a failed accept with a connection from another source.
  bool try_recover(loop::AcceptOperation& operation);
  /// Returns true if no source gives connections any more.
  bool closed() const noexcept { return drain_ == DrainState::closed; }

  /// Returns true if the connection accepted last came from another core, and resets the flag.
  bool take_handed_off_flag() noexcept { return std::exchange(handed_off_, false); }
  /// Returns true if another core has taken the accepted connection; the caller keeps it otherwise.
  bool hand_over(loop::Descriptor& accepted);
  /// Returns the socket of an accepted connection. Returns nullptr on failure, mostly for lack of
  /// memory; the connection is then closed.
  loop::Socket* adopt(loop::Descriptor accepted);
  /// Maps the error of a failed accept to the error for the caller.
  std::error_code to_accept_error(std::error_code error) const noexcept;

 private:
  // The accept of the listener. One that finishes immediately does not leave `idle`.
  //
  //   unused --the first accept--> idle <--resumed-- started
  //   idle --begin()--> started
  //   idle --begin() during a pause, or without the main socket--> parked
  //   parked --unpark() or cancel()--> started
  enum class AcceptState : std::uint8_t {
    unused,   // no accept has begun
    idle,     // no accept is pending
    parked,   // accepting_ waits here and not in the backend
    started,  // accepting_ waits in the backend, or has finished and will be resumed
  };

  // The drain of the listener; it is independent of the accept.
  //
  //   none --drain()--> leaving --all sockets have ended--> closed
  //   leaving --a socket is open in this process alone--> emptying
  //   emptying, quiet --a quiet_period begins while an accept is pending--> quiet
  //   quiet --another accept begins, or none is pending--> emptying
  //   quiet --the quiet_period ends--> closed
  //   emptying --rounds_max have passed--> closed
  enum class DrainState : std::uint8_t {
    none,
    leaving,   // other processes keep all sockets open; none has to be emptied
    emptying,  // the drain waits for a quiet_period without connections
    quiet,     // the same accept has been pending since the quiet_period began
    closed,    // no source gives connections any more
  };

  // An accept must have waited for this time without a connection before a drained listener closes.
  // A handshake that was in progress when new ones were refused completes within a round trip.
  static constexpr Duration quiet_period = std::chrono::milliseconds(50);
  // Maximum number of quiet periods. If the platform cannot refuse new connections and they keep
  // coming, the listener closes after 2 s and loses some of them.
  static constexpr int rounds_max = 40;

  void on_connections() override { wake_accept(); }
  void on_change() override { wake_accept(); }
  static void on_drain(DrainObserver& self) { static_cast<State&>(self).drain(); }
  static void on_resume_accepting(AcceptObserver& self) {
    static_cast<State&>(self).resume_accepting();
  }
  static void on_quiet_timer(loop::Timer& self) { static_cast<State&>(self).check_quiet(); }

  void change(AcceptState next) noexcept;
  void change(DrainState next) noexcept;
  bool draining() const noexcept { return drain_ != DrainState::none; }
  bool empties_queues() const noexcept {
    return drain_ == DrainState::emptying || drain_ == DrainState::quiet;
  }
  void begin_emptying() noexcept;
  void on_first_accept();
  bool take_ready(loop::AcceptOperation& operation);
  bool has_connection() const noexcept;
  void park(loop::AcceptOperation& operation) noexcept;
  void unpark();
  void wake_accept();
  bool is_finished() const noexcept;
  void end_main_listener();
  void resume_accepting();
  bool stays_open_elsewhere() const noexcept;
  void drain();
  void drain_extra_listener(ExtraListener& extra);
  void start_quiet_timer() noexcept;
  void check_quiet();

  Loop& loop_;
  ConnectionCounters& counters_;
  loop::Socket& socket_;
  std::shared_ptr<loop::SharedListener> shared_;
  loop::HeldAddresses::Hold hold_;
  std::vector<ExtraListener*> extra_listeners_;
  ConnectionBalancer* balancer_;
  HandoffQueue* handoff_queue_ = nullptr;       // connections from other cores
  loop::AcceptOperation* accepting_ = nullptr;  // the pending accept
  int rounds_left_ = rounds_max;
  bool through_drain_;
  AcceptState accept_ = AcceptState::unused;
  DrainState drain_ = DrainState::none;
  bool main_listener_ended_ = false;  // true if no more connections come from the socket
  bool handed_off_ = false;           // see take_handed_off_flag()
};

/// Listens like listen(), but a drain of the loop does not close the listener. It accepts until its
/// owner destroys it. If another process has a socket of the address open, the drain closes it as
/// any other listener, because that process serves later connections.
/// Errors: those of listen().
/// Cancel: that of listen().
Task<Result<Listener>> listen_through_drain(Endpoint endpoint, ListenOptions options = {});

}  // namespace weir::tcp
