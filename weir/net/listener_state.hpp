// What a listener is behind its handle: its sockets, and how it ends without hurting anybody.
#pragma once

#include <memory>
#include <system_error>
#include <vector>

#include "weir/loop/balance.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/side_door.hpp"

namespace weir::tcp {

/// What a listener shares with its pending accept; it stays where it is when the listener moves.
///
/// Connections come by four ways, and all of them end before an accept says that it is closed: from
/// the socket, through side doors, from other cores (Intake), and, while the loop is held, not yet.
///
/// A drain ends a socket in one of two ways. One that is this process' alone turns newcomers away
/// and is emptied, until nobody has come for a while. One that goes on in another process is left
/// as it is: this process takes nothing more out of it.
class Listener::State final : Timer,
                              DrainWatcher,
                              AdmissionWatcher,
                              Intake::Receiver,
                              SideDoor::Owner {
 public:
  State(Loop& loop, Socket& socket, const LoopGroup::Listener& listener);
  ~State();

  /// Before the first accept. Errors: those of open_side_door().
  Result<> add_side_doors(const std::vector<std::shared_ptr<SharedListener>>& further);

  Loop& loop() noexcept { return loop_; }
  Socket& socket() noexcept { return socket_; }

  /// Whether it finished at once.
  bool begin(AcceptOperation& operation);
  /// It has finished and runs.
  void ended() noexcept { accepting_ = nullptr; }
  void cancel(AcceptOperation& operation);
  /// Of one that failed: whether there is a connection for it all the same.
  bool goes_on(AcceptOperation& operation);
  /// Nothing comes any more, by any way.
  bool closed() const noexcept { return closed_; }

  /// Whether what was accepted last came from another core. Asked once for each.
  bool was_taken_over() noexcept { return std::exchange(taken_over_, false); }
  /// Whether what this core has accepted is another core's now.
  bool hand_over(Descriptor& accepted);
  /// The stream of what was accepted, or nullptr: then it is closed, for want of memory mostly.
  Socket* adopt(Descriptor accepted);
  /// What an accept that failed so is told.
  std::error_code explain(std::error_code error) const noexcept;

 private:
  // How long somebody must have waited for a connection in vain before a drained listener closes. A
  // handshake that was under way when new ones were refused completes within a round trip.
  static constexpr Duration grace = std::chrono::milliseconds(50);
  // Where newcomers cannot be refused and keep coming, it closes on some of them after 2 s.
  static constexpr int rounds_max = 40;

  void connections_came() override { reconsider(); }
  void side_door_changed() override { reconsider(); }
  static void drain_asked(DrainWatcher& self) { static_cast<State&>(self).drain(); }
  static void admitted(AdmissionWatcher& self) { static_cast<State&>(self).admit(); }
  static void grace_ended(Timer& self) { static_cast<State&>(self).check_quiet(); }

  void announce();
  bool take_one(AcceptOperation& operation);
  bool has_one() const noexcept;
  void park(AcceptOperation& operation) noexcept;
  void unpark();
  void reconsider();
  bool over() const noexcept;
  void end_main();
  void admit();
  void drain();
  void start_grace() noexcept;
  void check_quiet();

  Loop& loop_;
  Socket& socket_;
  std::shared_ptr<SharedListener> shared_;
  std::vector<SideDoor*> side_doors_;
  Balance* balance_;
  Intake* intake_ = nullptr;  // what other cores give this one
  AcceptOperation* accepting_ = nullptr;
  int rounds_left_ = rounds_max;
  bool announced_ = false;   // that it is about to accept
  bool parked_ = false;      // accepting_ waits here and not in the backend
  bool main_ended_ = false;  // nothing comes from the socket any more
  bool quiet_ = false;       // one and the same accept has been pending since the grace began
  bool draining_ = false;
  bool empties_ = false;     // a drain waits until nobody has come for a while
  bool closed_ = false;      // drained
  bool taken_over_ = false;  // see was_taken_over()
};

}  // namespace weir::tcp
