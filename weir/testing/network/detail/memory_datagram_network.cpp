#include "weir/testing/network/detail/memory_datagram_network.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <iterator>
#include <string>
#include <utility>

namespace weir {
namespace {

using os::Address;
using os::AddressFamily;

// What a datagram holds at most: an IP packet of 64 KiB without its headers.
constexpr std::size_t datagram_bytes_max = 65'507;

/// 224.0.0.0/4 or ff00::/8.
bool is_group(const Address& address) {
  const auto* const bytes = static_cast<const unsigned char*>(address.data());
  if (address.family() == AddressFamily::ipv6) {
    return bytes[offsetof(sockaddr_in6, sin6_addr)] == 0xff;
  }
  return address.is_inet() && (bytes[offsetof(sockaddr_in, sin_addr)] & 0xf0) == 0xe0;
}

}  // namespace

MemoryDatagramSocket::MemoryDatagramSocket(MemoryDatagramNetwork& network, MemoryChance& chance,
                                           const Address& local, const DatagramOptions& options)
    : MemoryEndpoint(Kind::datagrams),
      network_(network),
      chance_(chance),
      peer_(options.peer),
      reuse_port_(options.reuse_port) {
  local_ = local;
  network_.sockets_.push_back(this);
}

MemoryDatagramSocket::~MemoryDatagramSocket() {
  die();
}

void MemoryDatagramSocket::die() noexcept {
  std::erase(network_.sockets_, this);
}

std::error_code MemoryDatagramSocket::receivable() const noexcept {
  if (error_) return error_;
  return queue_.empty() ? system_error(EAGAIN) : std::error_code();
}

Result<MemoryDatagram> MemoryDatagramSocket::receive() {
  if (error_) return fail(std::exchange(error_, {}));
  if (queue_.empty()) return fail(system_error(EAGAIN));
  MemoryDatagram oldest = std::move(queue_.front());
  queue_.pop_front();
  held_ -= oldest.bytes.size() + overhead_bytes;
  return oldest;
}

Result<> MemoryDatagramSocket::send(Bytes bytes, const Address& to) {
  if (error_) return fail(std::exchange(error_, {}));
  Address target = to.family() == AddressFamily::none ? peer_ : to;
  if (target.family() == AddressFamily::none) return fail(system_error(EDESTADDRREQ));
  const bool from_ipv4 = local_.family() == AddressFamily::ipv4;
  if (!target.is_inet() || (from_ipv4 && target.family() != AddressFamily::ipv4)) {
    return fail(system_error(EAFNOSUPPORT));
  }
  if (bytes.size() > datagram_bytes_max) return fail(system_error(EMSGSIZE));
  // Who sends to "every interface" means this machine, and who is on all of them sends from there.
  if (target.is_any()) target = loopback_of(target.family(), target.port());
  const Address source = local_.is_any() ? network_.source_of(local_, target) : local_;
  const bool heard = network_.send(bytes, {source, target}, chance_.datagram_copies());
  if (!heard && peer_.family() != AddressFamily::none) refused();
  return {};
}

void MemoryDatagramSocket::arrived(Bytes bytes, const Address& from) {
  const std::size_t needed = bytes.size() + overhead_bytes;
  if (held_ + needed > buffer_bytes) return;
  held_ += needed;
  queue_.push_back({{bytes.begin(), bytes.end()}, from});
  changed();
}

void MemoryDatagramSocket::refused() {
  error_ = system_error(ECONNREFUSED);
  changed();
}

bool MemoryDatagramSocket::is_member(const Address& group) const noexcept {
  return std::ranges::find(groups_, group.with_port(0)) != groups_.end();
}

Result<> MemoryDatagramSocket::join(const Address& group) {
  if (!is_group(group)) return fail(system_error(EINVAL));
  if (is_member(group)) return fail(system_error(EADDRINUSE));
  groups_.push_back(group.with_port(0));
  return {};
}

Result<> MemoryDatagramSocket::leave(const Address& group) {
  if (std::erase(groups_, group.with_port(0)) == 0) return fail(system_error(EADDRNOTAVAIL));
  return {};
}

bool MemoryDatagramNetwork::taken(const Address& address, bool shared) const {
  return std::ranges::any_of(sockets_, [&](const MemoryDatagramSocket* each) {
    if (shared && each->reuse_port_) return false;
    const Address& other = each->local();
    return other == address || covers(other, address) || covers(address, other);
  });
}

Result<std::unique_ptr<MemoryDatagramSocket>> MemoryDatagramNetwork::open(
    const DatagramOptions& options, MemoryChance& chance) {
  const bool bound = options.local.family() != AddressFamily::none;
  if (!(bound ? options.local : options.peer).is_inet()) return fail(system_error(EAFNOSUPPORT));
  Address local = bound ? options.local : source_of(options.local, options.peer).with_port(0);
  if (local.port() == 0) {
    const auto found =
        ports_.find(local, [this](const Address& each) { return taken(each, false); });
    if (!found) return fail(system_error(EADDRINUSE));
    local = *found;
  } else if (taken(local, options.reuse_port && !options.first)) {
    return fail(system_error(EADDRINUSE));
  }
  return std::make_unique<MemoryDatagramSocket>(*this, chance, local, options);
}

std::vector<MemoryDatagramSocket*> MemoryDatagramNetwork::receivers_of(
    const Envelope& envelope) const {
  std::vector<MemoryDatagramSocket*> found;
  const auto collect = [&](auto matches) {
    if (!found.empty()) return;
    std::ranges::copy_if(sockets_, std::back_inserter(found), matches);
  };
  const auto connected = [](const MemoryDatagramSocket* each) {
    return each->peer().family() != AddressFamily::none;
  };
  const auto at = [&](const MemoryDatagramSocket* each) { return each->local() == envelope.to; };
  const auto around = [&](const MemoryDatagramSocket* each) {
    return covers(each->local(), envelope.to);
  };
  // The more somebody has said of what he wants, the sooner it is his.
  collect([&](auto* each) { return at(each) && each->peer() == envelope.from; });
  collect([&](auto* each) { return at(each) && !connected(each); });
  collect([&](auto* each) { return around(each) && each->peer() == envelope.from; });
  collect([&](auto* each) { return around(each) && !connected(each); });
  return found;
}

void MemoryDatagramNetwork::join(MemoryRoutes& routes, const Address& own) noexcept {
  routes_ = &routes;
  own_ = own.with_port(0);
}

/// Whether it is no address of loopback.
bool MemoryDatagramNetwork::elsewhere(const Address& target) const noexcept {
  return routes_ != nullptr && target != loopback_of(target.family(), target.port());
}

/// What somebody on all interfaces sends from.
Address MemoryDatagramNetwork::source_of(const Address& local, const Address& target) const {
  const bool own = elsewhere(target) && target.family() == own_.family();
  const std::uint16_t port = local.is_inet() ? local.port() : std::uint16_t{0};
  return own ? own_.with_port(port) : loopback_of(target.family(), port);
}

bool MemoryDatagramNetwork::send(Bytes bytes, const Envelope& envelope, std::size_t copies) {
  bool heard = true;
  for (std::size_t copy = 0; copy < copies; ++copy) {
    if (routes_ == nullptr || is_group(envelope.to)) {
      heard = deliver(bytes, envelope);
      continue;
    }
    const bool here = !elsewhere(envelope.to) || envelope.to.with_port(0) == own_;
    MemoryDatagramNetwork* const there = here ? this : routes_->datagrams_at(envelope.to);
    if (there != nullptr) travel(bytes, envelope, *there);
  }
  return heard;
}

void MemoryDatagramNetwork::travel(Bytes bytes, const Envelope& envelope,
                                   MemoryDatagramNetwork& there) {
  MemoryPath& path = routes_->path(own_, there.own_);
  if (!path.open()) return;
  const auto arrive = [this, &path, &there, kept = std::vector(bytes.begin(), bytes.end()),
                       from = envelope.from, to = envelope.to] {
    if (!path.open() || there.deliver(kept, {from, to})) return;
    MemoryPath& back = routes_->path(there.own_, own_);
    const auto tell = [this, &back, from, to] {
      if (back.open()) refused({from, to});
    };
    back.clock().at(after(back.clock().now(), back.delay()), tell);
  };
  path.clock().at(after(path.clock().now(), path.delay()), arrive);
}

void MemoryDatagramNetwork::refused(const Envelope& envelope) {
  for (MemoryDatagramSocket* const each : sockets_) {
    const bool sender = each->local() == envelope.from || covers(each->local(), envelope.from);
    if (sender && each->peer() == envelope.to) each->refused();
  }
}

bool MemoryDatagramNetwork::deliver(Bytes bytes, const Envelope& envelope) {
  if (is_group(envelope.to)) {
    deliver_to_group(bytes, envelope);
    return true;
  }
  const auto receivers = receivers_of(envelope);
  if (receivers.empty()) return false;
  // All that one peer sends goes to one of those who share the port.
  const std::size_t choice = std::hash<std::string>()(envelope.from.to_string());
  receivers[choice % receivers.size()]->arrived(bytes, envelope.from);
  return true;
}

void MemoryDatagramNetwork::deliver_to_group(Bytes bytes, const Envelope& envelope) {
  for (MemoryDatagramSocket* const each : sockets_) {
    const Address& local = each->local();
    const bool bound_there = local == envelope.to || covers(local, envelope.to);
    const bool stranger =
        each->peer().family() != AddressFamily::none && each->peer() != envelope.from;
    if (bound_there && !stranger && each->is_member(envelope.to)) {
      each->arrived(bytes, envelope.from);
    }
  }
}

}  // namespace weir
