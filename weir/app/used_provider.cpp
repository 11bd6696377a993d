#include "weir/app/used_provider.hpp"

#include "weir/app/node.hpp"
#include "weir/loop/loop.hpp"

namespace weir::wiring {

unsigned UsedProvider::core() const noexcept {
  return node_.core;
}

void UsedProvider::let_go(Loop& loop, const Farewell& farewell) noexcept {
  farewell_ = farewell;
  const Duration patience = node_.recipe->said().stop_deadline;
  loop.timers().start(*this, after(loop.host().now(), patience));
}

void UsedProvider::out_of_patience(Timer& self) {
  auto& provider = static_cast<UsedProvider&>(self);
  const ProviderUse* use = provider.uses_.front();
  while (use != nullptr) {
    const ProviderUse* const next = provider.uses_.next(*use);
    if (use->cancel_ != nullptr) use->cancel_->cancel();  // which only asks
    use = next;
  }
}

void ProviderUse::end() {
  const UsedProvider::Farewell farewell = of_.farewell_;  // it goes with the provider
  farewell.unused(of_, farewell);
}

}  // namespace weir::wiring
