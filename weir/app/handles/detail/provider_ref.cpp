// Counted references to providers.
#include "weir/app/handles/detail/provider_ref.hpp"

#include "weir/app/describe/detail/node.hpp"
#include "weir/loop/loop.hpp"

namespace weir::inject {

unsigned CountedProvider::core() const noexcept {
  return instance_.core;
}

void CountedProvider::release_when_unused(Loop& loop, const OnUnused& on_unused) noexcept {
  on_unused_ = on_unused;
  const Duration stop_timeout = instance_.registration->effective_options().stop_timeout;
  loop.timers().start(*this, after(loop.platform().now(), stop_timeout));
}

void CountedProvider::on_timeout(loop::Timer& self) {
  auto& provider = static_cast<CountedProvider&>(self);
  const ProviderRef* use = provider.refs_.front();
  while (use != nullptr) {
    const ProviderRef* const next = provider.refs_.next(*use);
    if (use->cancel_ != nullptr) use->cancel_->cancel();  // only requests the end
    use = next;
  }
}

void ProviderRef::end() {
  // a copy, because the original is destroyed with the provider
  const CountedProvider::OnUnused on_unused = of_.on_unused_;
  on_unused.callback(of_, on_unused);
}

}  // namespace weir::inject
