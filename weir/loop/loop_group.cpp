#include "weir/loop/loop_group.hpp"

#include <algorithm>

namespace weir {

Result<Descriptor> LoopGroup::listen(Host& host, const os::Address& address,
                                     const ListenOptions& options) {
  const std::lock_guard lock(mutex_);
  auto listener = open(host, address, options);
  if (!listener) {
    failure_ = "cannot listen on " + address.to_string() + ": " + listener.error().message();
  }
  return listener;
}

std::string LoopGroup::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

Result<Descriptor> LoopGroup::open(Host& host, const os::Address& address,
                                   const ListenOptions& options) {
  const auto known = std::find_if(listening_.begin(), listening_.end(), [&](const Listening& each) {
    return each.asked == address || each.bound == address;
  });
  if (known != listening_.end()) return host.listen(known->bound, options);
  // The loops of this group share the port, but with nobody else.
  ListenOptions alone = options;
  alone.first = true;
  auto listener = host.listen(address, alone);
  if (!listener) return listener;
  auto bound = host.local_address(listener->value());
  if (!bound) return fail(bound.error());
  listening_.push_back({address, *bound});
  if (on_listening) on_listening(*bound);
  return listener;
}

}  // namespace weir
