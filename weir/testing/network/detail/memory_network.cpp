// The simulated network: finding the listener for an address.
#include "weir/testing/network/detail/memory_network.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace weir {
namespace {

using os::Address;
using os::AddressFamily;

// A Unix socket without a name: its address is the family alone.
Address unnamed_like(const Address& local) {
  constexpr std::size_t family_size = 2;
  Address unnamed;
  std::memcpy(unnamed.buffer(), local.data(), family_size);
  unnamed.set_size(family_size);
  return unnamed;
}

}  // namespace

void MemoryNetwork::join(MemoryRoutes& routes, const os::Address& own) noexcept {
  routes_ = &routes;
  own_ = own.with_port(0);
}

bool MemoryNetwork::taken(const Address& address, bool reuse_port) const {
  return std::ranges::any_of(listeners_, [&](const MemoryListener* each) {
    const Address& other = each->local();
    if (address.is_inet() && reuse_port && each->reuse_port_) return false;
    return other == address || covers(other, address) || covers(address, other);
  });
}

Result<std::unique_ptr<MemoryListener>> MemoryNetwork::listen(const Address& address,
                                                              ListenAsk ask) {
  if (address.family() == AddressFamily::none) return fail(system_error(EAFNOSUPPORT));
  Address bound = address;
  if (address.is_inet() && address.port() == 0) {
    const auto found =
        ports_.find(address, [this](const Address& each) { return taken(each, false); });
    if (!found) return fail(system_error(EADDRINUSE));
    bound = *found;
  } else if (taken(bound, ask.reuse_port && !ask.first)) {
    return fail(system_error(EADDRINUSE));
  }
  auto listener = std::make_unique<MemoryListener>(*this, bound, ask.backlog, ask.reuse_port);
  listeners_.push_back(listener.get());
  return listener;
}

void MemoryNetwork::forget(const MemoryListener& listener) {
  std::erase(listeners_, &listener);
}

std::unique_ptr<MemoryStream> MemoryNetwork::open_stream() {
  return std::make_unique<MemoryStream>(chance_.buffer_bytes(buffer_bytes_));
}

std::vector<MemoryListener*> MemoryNetwork::listeners_for(const Address& peer) const {
  std::vector<MemoryListener*> found;
  const auto collect = [&](auto matches) {
    for (MemoryListener* each : listeners_) {
      if (found.empty() || each->local() == found.front()->local()) {
        if (matches(each->local())) found.push_back(each);
      }
    }
  };
  collect([&](const Address& local) { return local == peer; });
  if (!found.empty()) return found;
  collect(
      [&](const Address& local) { return local.family() == peer.family() && covers(local, peer); });
  if (found.empty()) collect([&](const Address& local) { return covers(local, peer); });
  return found;
}

/// nullptr: nobody has that address.
MemoryNetwork* MemoryNetwork::network_of(const Address& peer) {
  const bool local = peer.family() == AddressFamily::local;
  const Address loopback = local ? peer : loopback_of(peer.family(), peer.port());
  if (routes_ == nullptr || local || peer == loopback || peer.with_port(0) == own_) return this;
  return routes_->network_at(peer);
}

MemoryListener* MemoryNetwork::next_of(const std::vector<MemoryListener*>& listeners) {
  if (chance_.crowds()) return listeners.front();
  const std::size_t turn = turns_[listeners.front()->local().to_string()]++;
  const std::size_t first = turn % listeners.size();
  return listeners[(first + chance_.pick(listeners.size())) % listeners.size()];
}

MemoryNetwork::Answer MemoryNetwork::connect(MemoryStream& stream, const Address& peer) {
  if (std::exchange(stream.refused_, false)) return Answer::refused;
  // Who connects to "every interface" means this machine.
  const Address target = peer.is_any() ? loopback_of(peer.family(), peer.port()) : peer;
  MemoryNetwork* const there = network_of(target);
  if (there == nullptr) return Answer::silence;
  const bool local = target.family() == AddressFamily::local;
  const bool routed = routes_ != nullptr && !local;
  MemoryPath* const way_there = routed ? &routes_->path(own_, there->own_) : nullptr;
  MemoryPath* const way_back = routed ? &routes_->path(there->own_, own_) : nullptr;
  if (routed && !(way_there->open() && way_back->open())) return Answer::silence;
  std::vector<MemoryListener*> listeners = there->listeners_for(target);
  if (listeners.empty()) return Answer::refused;
  std::erase_if(listeners, [](const MemoryListener* each) { return each->refusing_; });
  if (listeners.empty()) return local ? Answer::refused : Answer::silence;
  MemoryListener& listener = *there->next_of(listeners);
  if (listener.full()) return Answer::silence;

  auto accepted = there->open_stream();
  accepted->local_ = target;
  accepted->coming_.set_path(way_there);
  stream.coming_.set_path(way_back);
  if (there != this) {
    stream.local_ = own_.with_port(ports_.next());
  } else {
    stream.local_ = local ? unnamed_like(target) : loopback_of(target.family(), ports_.next());
  }
  stream.peer_address_ = accepted->local_;
  accepted->peer_address_ = stream.local_;
  stream.other_ = accepted.get();
  accepted->other_ = &stream;
  stream.state_ = accepted->state_ = MemoryStream::State::connected;
  if (stream.ends_early_) stream.end_receiving();
  listener.queue_.push_back(std::move(accepted));
  stream.changed();
  listener.changed();
  return Answer::established;
}

}  // namespace weir
