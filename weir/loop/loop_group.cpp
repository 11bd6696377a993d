#include "weir/loop/loop_group.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace weir {

Result<LoopGroup::Listener> LoopGroup::listen(Host& host, const os::Address& address,
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

Result<LoopGroup::Listener> LoopGroup::open(Host& host, const os::Address& address,
                                            const ListenOptions& options) {
  std::erase_if(listening_, [](const Listening& each) {
    return each.bound.family() == os::AddressFamily::local && each.shared.expired();
  });
  const auto known = std::find_if(listening_.begin(), listening_.end(), [&](const Listening& each) {
    return each.asked == address || each.bound == address;
  });
  if (known != listening_.end()) return open_another(host, *known, options);
  // The loops of this group share the port, but with nobody else.
  ListenOptions alone = options;
  alone.first = true;
  auto listener = host.listen(address, alone);
  if (!listener) return fail(listener.error());
  auto bound = host.local_address(listener->value());
  if (!bound) return fail(bound.error());
  std::shared_ptr<SharedListener> shared;
  if (bound->family() == os::AddressFamily::local) {
    auto own = host.share(listener->value());
    if (!own) return fail(own.error());
    shared = std::make_shared<SharedListener>(host, std::move(*own), *bound);
  }
  listening_.push_back({address, *bound, shared});
  if (on_listening) on_listening(*bound);
  return Listener{std::move(*listener), std::move(shared), balance_on(*bound)};
}

Balance* LoopGroup::balance_on(const os::Address& bound) {
  if (loops_.size() < 2) return nullptr;
  for (const Balanced& each : balanced_) {
    if (each.bound == bound) return each.balance.get();
  }
  return balanced_.emplace_back(Balanced{bound, std::make_unique<Balance>(loops_)}).balance.get();
}

Result<Descriptor> LoopGroup::open_datagrams(Host& host, const DatagramOptions& options) {
  if (!options.reuse_port) return host.open_datagrams(options);
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(datagrams_.begin(), datagrams_.end(), [&](const Bound& each) {
    return each.asked == options.local || each.bound == options.local;
  });
  DatagramOptions own = options;
  own.first = known == datagrams_.end();
  if (!own.first) own.local = known->bound;
  auto socket = host.open_datagrams(own);
  if (!socket) {
    failure_ = "cannot bind to " + own.local.to_string() + ": " + socket.error().message();
    return socket;
  }
  if (!own.first) return socket;
  auto bound = host.local_address(socket->value());
  if (!bound) return fail(bound.error());
  datagrams_.push_back({options.local, *bound});
  if (on_listening) on_listening(*bound);
  return socket;
}

Result<LoopGroup::Listener> LoopGroup::open_another(Host& host, const Listening& first,
                                                    const ListenOptions& options) {
  std::shared_ptr<SharedListener> shared = first.shared.lock();
  if (shared != nullptr && !options.reuse_port) return fail(system_error(EADDRINUSE));
  auto listener = shared != nullptr ? shared->share() : host.listen(first.bound, options);
  if (!listener) return fail(listener.error());
  return Listener{std::move(*listener), std::move(shared), balance_on(first.bound)};
}

}  // namespace weir
