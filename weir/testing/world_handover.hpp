// Hot restart between the processes of one simulated machine.
#pragma once

#include <memory>
#include <string>

#include "weir/loop/handover.hpp"
#include "weir/loop/handover_conversation.hpp"
#include "weir/sim/detail/host_main.hpp"
#include "weir/testing/world_place.hpp"

namespace weir {

/// One process' part; see Handover. Its thread is a stack of its own that the World lets go on.
/// Threads: one at a time. Lifetime: shorter than that of its host.
class WorldHandover final : public Handover {
 public:
  /// Called on the stack of the host's main, which waits for an older process meanwhile.
  static HandoverStart meet(WorldHost& host, WorldState& state, WorldMeetings& meetings,
                            const HandoverOptions& options);
  ~WorldHandover() override;

  HandoverParty::Sockets take_sockets() override { return conversation_.take_sockets(); }
  Result<> start(HandoverParty& party) override;
  void accepting() noexcept override { conversation_.accepting(); }
  void stopped_one() noexcept override { conversation_.stopped_one(); }
  void stop() noexcept override { conversation_.stop(); }

 private:
  WorldHandover(WorldHost& host, WorldState& state, WorldMeetings& meetings,
                const HandoverOptions& options);

  WorldHost& host_;
  std::unique_ptr<WorldMain> thread_;
  WorldPlace place_;
  HandoverConversation conversation_;
};

}  // namespace weir
