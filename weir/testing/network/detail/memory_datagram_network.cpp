// Datagram sockets of a simulated platform, and the delivery of their datagrams.
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

// The maximum size of a datagram: an IP packet of 64 KiB without its headers.
constexpr std::size_t datagram_bytes_max = 65'507;

/// Returns true for 224.0.0.0/4 and ff00::/8.
bool is_group(const Address& address) {
  const auto* const bytes = static_cast<const unsigned char*>(address.data());
  if (address.family() == AddressFamily::ipv6) {
    return bytes[offsetof(sockaddr_in6, sin6_addr)] == 0xff;
  }
  return address.is_inet() && (bytes[offsetof(sockaddr_in, sin_addr)] & 0xf0) == 0xe0;
}

}  // namespace

MemoryDatagramSocket::MemoryDatagramSocket(MemoryDatagramNetwork& network,
                                           Nondeterminism& nondeterminism, const Address& local,
                                           const loop::DatagramOptions& options)
    : MemoryEndpoint(Kind::datagrams),
      network_(network),
      nondeterminism_(nondeterminism),
      peer_(options.peer),
      reuse_port_(options.reuse_port) {
  local_ = local;
  network_.sockets_.push_back(this);
}

MemoryDatagramSocket::~MemoryDatagramSocket() {
  close_on_kill();
}

void MemoryDatagramSocket::close_on_kill() noexcept {
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
  queued_bytes_ -= oldest.bytes.size() + overhead_bytes;
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
  // A send to a wildcard address reaches this machine. A socket bound to a wildcard address sends
  // from a specific one.
  if (target.is_any()) target = loopback_of(target.family(), target.port());
  const Address source = local_.is_any() ? network_.source_of(local_, target) : local_;
  const bool heard = network_.send(bytes, {source, target}, nondeterminism_.datagram_copies());
  if (!heard && peer_.family() != AddressFamily::none) refused();
  return {};
}

void MemoryDatagramSocket::arrived(Bytes bytes, const Address& from) {
  const std::size_t needed = bytes.size() + overhead_bytes;
  if (queued_bytes_ + needed > buffer_bytes) return;
  queued_bytes_ += needed;
  queue_.push_back({{bytes.begin(), bytes.end()}, from});
  notify_observers();
}

void MemoryDatagramSocket::refused() {
  error_ = system_error(ECONNREFUSED);
  notify_observers();
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
    const loop::DatagramOptions& options, Nondeterminism& nondeterminism) {
  const bool bound = options.local.family() != AddressFamily::none;
  if (!(bound ? options.local : options.peer).is_inet()) return fail(system_error(EAFNOSUPPORT));
  Address local = bound ? options.local : source_of(options.local, options.peer).with_port(0);
  if (local.port() == 0) {
    const auto found =
        ports_.find(local, [this](const Address& each) { return taken(each, false); });
    if (!found) return fail(system_error(EADDRINUSE));
    local = *found;
  } else if (taken(local, options.reuse_port && !options.require_unused)) {
    return fail(system_error(EADDRINUSE));
  }
  return std::make_unique<MemoryDatagramSocket>(*this, nondeterminism, local, options);
}

std::vector<MemoryDatagramSocket*> MemoryDatagramNetwork::receivers_of(
    const DatagramRoute& route) const {
  std::vector<MemoryDatagramSocket*> found;
  const auto collect = [&](auto matches) {
    if (!found.empty()) return;
    std::ranges::copy_if(sockets_, std::back_inserter(found), matches);
  };
  const auto connected = [](const MemoryDatagramSocket* each) {
    return each->peer().family() != AddressFamily::none;
  };
  const auto at = [&](const MemoryDatagramSocket* each) { return each->local() == route.to; };
  const auto around = [&](const MemoryDatagramSocket* each) {
    return covers(each->local(), route.to);
  };
  // The most specific sockets get the datagram.
  collect([&](auto* each) { return at(each) && each->peer() == route.from; });
  collect([&](auto* each) { return at(each) && !connected(each); });
  collect([&](auto* each) { return around(each) && each->peer() == route.from; });
  collect([&](auto* each) { return around(each) && !connected(each); });
  return found;
}

void MemoryDatagramNetwork::join(NetworkTopology& topology, const Address& own) noexcept {
  topology_ = &topology;
  own_ = own.with_port(0);
}

/// Returns true if `target` is not a loopback address, and other hosts may exist.
bool MemoryDatagramNetwork::elsewhere(const Address& target) const noexcept {
  return topology_ != nullptr && target != loopback_of(target.family(), target.port());
}

/// Returns the source address of a socket that is bound to a wildcard address.
Address MemoryDatagramNetwork::source_of(const Address& local, const Address& target) const {
  const bool own = elsewhere(target) && target.family() == own_.family();
  const std::uint16_t port = local.is_inet() ? local.port() : std::uint16_t{0};
  return own ? own_.with_port(port) : loopback_of(target.family(), port);
}

bool MemoryDatagramNetwork::send(Bytes bytes, const DatagramRoute& route, std::size_t copies) {
  bool heard = true;
  for (std::size_t copy = 0; copy < copies; ++copy) {
    if (topology_ == nullptr || is_group(route.to)) {
      heard = deliver(bytes, route);
      continue;
    }
    const bool here = !elsewhere(route.to) || route.to.with_port(0) == own_;
    MemoryDatagramNetwork* const there = here ? this : topology_->datagrams_at(route.to);
    if (there != nullptr) transmit(bytes, route, *there);
  }
  return heard;
}

void MemoryDatagramNetwork::transmit(Bytes bytes, const DatagramRoute& route,
                                     MemoryDatagramNetwork& there) {
  LinkModel& link = topology_->link(own_, there.own_);
  if (!link.open()) return;
  const auto arrive = [this, &link, &there, kept = std::vector(bytes.begin(), bytes.end()),
                       from = route.from, to = route.to] {
    if (!link.open() || there.deliver(kept, {from, to})) return;
    LinkModel& back = topology_->link(there.own_, own_);
    const auto tell = [this, &back, from, to] {
      if (back.open()) refused({from, to});
    };
    back.clock().at(after(back.clock().now(), back.delay()), tell);
  };
  link.clock().at(after(link.clock().now(), link.delay()), arrive);
}

void MemoryDatagramNetwork::refused(const DatagramRoute& route) {
  for (MemoryDatagramSocket* const each : sockets_) {
    const bool sender = each->local() == route.from || covers(each->local(), route.from);
    if (sender && each->peer() == route.to) each->refused();
  }
}

bool MemoryDatagramNetwork::deliver(Bytes bytes, const DatagramRoute& route) {
  if (is_group(route.to)) {
    deliver_to_group(bytes, route);
    return true;
  }
  const auto receivers = receivers_of(route);
  if (receivers.empty()) return false;
  // All datagrams of one peer go to the same one of the sockets that share the port.
  const std::size_t choice = std::hash<std::string>()(route.from.to_string());
  receivers[choice % receivers.size()]->arrived(bytes, route.from);
  return true;
}

void MemoryDatagramNetwork::deliver_to_group(Bytes bytes, const DatagramRoute& route) {
  for (MemoryDatagramSocket* const each : sockets_) {
    const Address& local = each->local();
    const bool bound_there = local == route.to || covers(local, route.to);
    const bool stranger =
        each->peer().family() != AddressFamily::none && each->peer() != route.from;
    if (bound_there && !stranger && each->is_member(route.to)) {
      each->arrived(bytes, route.from);
    }
  }
}

}  // namespace weir
