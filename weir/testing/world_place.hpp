// Where the processes of one simulated machine meet, and how a handover's thread waits there.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/loop/handover_place.hpp"
#include "weir/testing/network/detail/memory_clock.hpp"
#include "weir/testing/network/detail/memory_endpoint.hpp"
#include "weir/sim/detail/host_main.hpp"
#include "weir/sim/detail/handover_connection.hpp"

namespace weir {

class WorldHost;
struct WorldState;

/// The socket at which newer processes come; open while any process has it, or it is on its way to
/// one. Then whoever still waits there finds that nobody is left.
class WorldMeeting final : public MemoryEndpoint {
 public:
  WorldMeeting() noexcept : MemoryEndpoint(Kind::meeting) {}
  ~WorldMeeting() override;

  void come(std::shared_ptr<WorldLine> newer);
  /// Who came first; nullptr: nobody.
  std::shared_ptr<WorldLine> take();

 private:
  std::deque<std::shared_ptr<WorldLine>> waiting_;
};

/// Of one machine: which socket is at a path. A name outlives the processes that have died.
using WorldMeetings = std::map<std::string, std::weak_ptr<WorldMeeting>>;

/// See HandoverPlace. Who waits hands the World its turn back, and is called some time after there
/// is a reason: a thread gets its CPU when it gets it. Before there is a thread, main itself waits.
/// Each call, here or of a talk, is a step before which the process may be killed; see
/// WorldHost::kill_at_handover_step(). Threads: one at a time. Lifetime: its thread outlives it.
class WorldPlace final : public HandoverPlace, MemoryObserver {
 public:
  WorldPlace(WorldHost& host, WorldState& state, WorldMeetings& meetings, std::string path);
  ~WorldPlace() override;

  std::string name() const override { return path_; }
  Result<std::unique_ptr<HandoverTalk>> meet() override;
  const Descriptor& socket() const noexcept override { return socket_; }
  void set_socket(Descriptor socket) override;
  void own() noexcept override;
  void disown() noexcept override;
  void leave() noexcept override;
  std::unique_ptr<HandoverTalk> wait_for_newer() override;
  bool wait(Instant until) override;
  void ring() noexcept override;

  /// It waits here from now on, instead of main; it begins when it gets its CPU.
  void begin(WorldMain& thread);
  /// Its process is dead: nothing that it says or has is there any more.
  void die();

  // For its talks.

  WorldHost& host() noexcept { return host_; }
  void add(WorldTalk& talk) { talks_.push_back(&talk); }
  void remove(WorldTalk& talk) noexcept { std::erase(talks_, &talk); }
  void begin_step();
  bool dead() const noexcept { return dead_; }
  bool take_ring() noexcept { return std::exchange(rung_, false); }
  /// There may be something to hear, or somebody may be here.
  void call();
  void wait_for_call(Instant until);

 private:
  void changed() override { call(); }
  WorldMeeting& meeting() noexcept;
  void resume();

  WorldHost& host_;
  WorldState& state_;
  WorldMeetings& meetings_;
  std::string path_;
  Descriptor socket_;
  bool owns_ = false;  // the name is this process' to remove
  std::vector<WorldTalk*> talks_;
  bool dead_ = false;
  bool rung_ = false;
  bool waiting_ = false;  // until it is called
  std::optional<MemoryClock::EventId> waking_;
  WorldMain* thread_ = nullptr;
};

}  // namespace weir
