#include "weir/testing/world_handover.hpp"

#include <utility>

#include "weir/sim/host.hpp"

namespace weir {

WorldHandover::WorldHandover(WorldHost& host, WorldState& state, WorldMeetings& meetings,
                             const HandoverOptions& options)
    : host_(host),
      place_(host, state, meetings, options.path),
      conversation_(host, options, place_) {}

WorldHandover::~WorldHandover() {
  stop();
  while (thread_ != nullptr && !thread_->returned()) host_.wait_in_main();
}

HandoverStart WorldHandover::meet(WorldHost& host, WorldState& state, WorldMeetings& meetings,
                                  const HandoverOptions& options) {
  std::unique_ptr<WorldHandover> handover(new WorldHandover(host, state, meetings, options));
  std::string failure = handover->conversation_.begin();
  if (!failure.empty()) return {nullptr, std::move(failure)};
  return {std::move(handover), {}};
}

Result<> WorldHandover::start(HandoverParty& party) {
  thread_ = std::make_unique<WorldMain>([this, &party] { conversation_.run(party); });
  place_.begin(*thread_);
  return {};
}

}  // namespace weir
