// The simulated network: listeners, and the connects to them.
#include "weir/testing/network/detail/memory_network.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace weir {
namespace {

using os::Address;
using os::AddressFamily;

// Returns the address of an unnamed Unix socket, which is the family alone.
Address unnamed_like(const Address& local) {
  constexpr std::size_t family_size = 2;
  Address unnamed;
  std::memcpy(unnamed.buffer(), local.data(), family_size);
  unnamed.set_size(family_size);
  return unnamed;
}

}  // namespace

void MemoryNetwork::join(NetworkTopology& topology, const os::Address& own) noexcept {
  topology_ = &topology;
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
                                                              ListenRequest request) {
  if (address.family() == AddressFamily::none) return fail(system_error(EAFNOSUPPORT));
  Address bound = address;
  if (address.is_inet() && address.port() == 0) {
    const auto found =
        ports_.find(address, [this](const Address& each) { return taken(each, false); });
    if (!found) return fail(system_error(EADDRINUSE));
    bound = *found;
  } else if (taken(bound, request.reuse_port && !request.require_unused)) {
    return fail(system_error(EADDRINUSE));
  }
  auto listener =
      std::make_unique<MemoryListener>(*this, bound, request.backlog, request.reuse_port);
  listeners_.push_back(listener.get());
  return listener;
}

void MemoryNetwork::remove(const MemoryListener& listener) {
  std::erase(listeners_, &listener);
}

std::unique_ptr<MemoryStream> MemoryNetwork::open_stream() {
  return std::make_unique<MemoryStream>(nondeterminism_.buffer_bytes(buffer_bytes_));
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

/// Returns the network with that address; nullptr if there is none.
MemoryNetwork* MemoryNetwork::network_of(const Address& peer) {
  const bool local = peer.family() == AddressFamily::local;
  const Address loopback = local ? peer : loopback_of(peer.family(), peer.port());
  if (topology_ == nullptr || local || peer == loopback || peer.with_port(0) == own_) return this;
  return topology_->network_at(peer);
}

MemoryListener* MemoryNetwork::next_of(const std::vector<MemoryListener*>& listeners) {
  if (nondeterminism_.picks_first_listener()) return listeners.front();
  const std::size_t turn = next_listener_[listeners.front()->local().to_string()]++;
  const std::size_t first = turn % listeners.size();
  return listeners[(first + nondeterminism_.pick(listeners.size())) % listeners.size()];
}

MemoryNetwork::ConnectResult MemoryNetwork::connect(MemoryStream& stream, const Address& peer) {
  if (std::exchange(stream.refused_, false)) return ConnectResult::refused;
  // A connect to a wildcard address reaches this machine.
  const Address target = peer.is_any() ? loopback_of(peer.family(), peer.port()) : peer;
  MemoryNetwork* const there = network_of(target);
  if (there == nullptr) return ConnectResult::no_reply;
  const bool local = target.family() == AddressFamily::local;
  const bool routed = topology_ != nullptr && !local;
  LinkModel* const way_there = routed ? &topology_->link(own_, there->own_) : nullptr;
  LinkModel* const way_back = routed ? &topology_->link(there->own_, own_) : nullptr;
  if (routed && !(way_there->open() && way_back->open())) return ConnectResult::no_reply;
  std::vector<MemoryListener*> listeners = there->listeners_for(target);
  if (listeners.empty()) return ConnectResult::refused;
  std::erase_if(listeners, [](const MemoryListener* each) { return each->refusing_; });
  if (listeners.empty()) return local ? ConnectResult::refused : ConnectResult::no_reply;
  MemoryListener& listener = *there->next_of(listeners);
  if (listener.full()) return ConnectResult::no_reply;

  auto accepted = there->open_stream();
  accepted->local_ = target;
  accepted->in_flight_.set_link(way_there);
  stream.in_flight_.set_link(way_back);
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
  stream.notify_observers();
  listener.notify_observers();
  return ConnectResult::established;
}

}  // namespace weir
