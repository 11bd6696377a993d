#include "weir/http/server/detail/open_connections.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "weir/base/time.hpp"
#include "weir/http/server/detail/connection.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/os/ip_range.hpp"
#include "weir/runtime/checks/machine_checks.hpp"
#include "weir/runtime/detail/connection_counters.hpp"

namespace weir::http {
namespace {

using checks::descriptors_reserved;

// Connections whose bytes may still be on their way are not evicted.
// A network with less than an eighth of those that a search sees gives none to others.
constexpr std::size_t part_of_sample = 8;
// Numbers of connections and of handshakes that one search looks at.
constexpr unsigned connections_sampled = 128;
constexpr unsigned handshakes_sampled = 32;

std::size_t default_connections_max(Loop& loop) {
  const std::size_t all = loop.platform().descriptor_limit().descriptors_max;
  return all > descriptors_reserved ? all - descriptors_reserved : 1;
}

}  // namespace

OpenConnections::OpenConnections(ServerState& server, Loop& loop, std::size_t most,
                                 ConnectionReserve* reserve)
    : DrainObserver([](DrainObserver& self) { static_cast<OpenConnections&>(self).drain(); }),
      server_(server),
      reserve_(reserve, loop),
      all_open_(reserve != nullptr ? reserve->open() : ServerConnections::of(loop).open),
      connections_max_(most),
      reserved_(nullptr),
      draining_(loop.draining()) {
  if (reserve != nullptr) {
    connections_max_ = std::max<std::size_t>(reserve->size(), 1);
  } else if (most == 0) {
    connections_max_ = default_connections_max(loop);
    reserved_ = &ConnectionReserve::sum_of(loop);
  } else {
    own_ = ServerConnectionCount::of(loop, server.router(), Endpoint());
  }
  if (!draining_) loop.observe_drain(*this);
}

void OpenConnections::set_endpoint(const Endpoint& endpoint) {
  assert(open_.empty());
  if (own_ == nullptr) return;
  own_ = ServerConnectionCount::of(server_.loop(), server_.router(), endpoint);
}

std::size_t OpenConnections::permits_max() const noexcept {
  if (reserved_ == nullptr) return connections_max_;
  const std::size_t reserved = reserved_->load(std::memory_order_relaxed);
  return connections_max_ - std::min(reserved, connections_max_ - 1);
}

/// Uses relaxed order, because only the number itself passes between cores.
std::optional<ConnectionPermit> OpenConnections::try_acquire_permit() noexcept {
  const std::size_t most = permits_max();
  std::atomic<std::size_t>& limited = own_ != nullptr ? own_->open : all_open_;
  std::size_t in_use = limited.load(std::memory_order_relaxed);
  do {
    if (in_use >= most) return std::nullopt;
  } while (!limited.compare_exchange_weak(in_use, in_use + 1, std::memory_order_relaxed));
  if (own_ != nullptr) all_open_.fetch_add(1, std::memory_order_relaxed);
  return ConnectionPermit(server_);
}

namespace {

/// A connection or a handshake that a search looks at.
struct Sampled {
  os::IpBytes network;
  Instant may_go;  // the time from which it may be evicted; `never`: it has a request
  Connection* connection;
  HandshakeNode* handshake;
};

/// Returns the one that gives way to a new connection of `newcomer`: of the network with the most,
/// the one that waits longest. A network with a small part of the sample keeps all, because those
/// of the newcomer may be outside the sample, or behind a balancer. Sorts the sample. Returns
/// nullptr if none may be taken.
const Sampled* find_evictable(std::span<Sampled> sample, const os::IpBytes& newcomer, Instant now) {
  std::ranges::sort(sample, {}, &Sampled::network);
  const auto own = std::ranges::equal_range(sample, newcomer, {}, &Sampled::network);
  const Sampled* found = nullptr;
  std::size_t found_of = 0;
  for (auto begin = sample.begin(); begin != sample.end();) {
    const auto end =
        std::ranges::upper_bound(begin, sample.end(), begin->network, {}, &Sampled::network);
    const auto count = static_cast<std::size_t>(end - begin);
    const auto longest = std::ranges::min_element(begin, end, {}, &Sampled::may_go);
    const bool is_own = begin->network == newcomer;
    const bool has_many = count > own.size() + 1 && count * part_of_sample >= sample.size();
    if (longest->may_go <= now && (is_own || has_many) && count > found_of) {
      found = &*longest;
      found_of = count;
    }
    begin = end;
  }
  return found;
}

}  // namespace

std::optional<ConnectionPermit> OpenConnections::acquire_permit(const Stream& stream) {
  auto permit = try_acquire_permit();
  if (permit || evictions_ >= evictions_max) return permit;
  std::array<Sampled, connections_sampled + handshakes_sampled> room;
  std::size_t size = 0;
  ConnectionNode* const first = next_sampled_ != nullptr ? next_sampled_ : open_.front();
  for (next_sampled_ = first; next_sampled_ != nullptr && size < connections_sampled;) {
    auto& each = static_cast<Connection&>(*next_sampled_);
    room[size++] = {each.network(), each.may_be_evicted_from(), &each, nullptr};
    next_sampled_ = open_.next(each);
    if (next_sampled_ == nullptr) next_sampled_ = open_.front();
    if (next_sampled_ == first) break;
  }
  HandshakeNode* handshake = handshakes_.front();  // the oldest
  for (unsigned count = 0; handshake != nullptr && count < handshakes_sampled; ++count) {
    room[size++] = {handshake->network(),
                    after(handshake->begun(), Connection::idle_before_eviction), nullptr,
                    handshake};
    handshake = handshakes_.next(*handshake);
  }
  // Only a full server asks the kernel for the address.
  const os::IpBytes newcomer = os::client_network(stream.peer_address());
  const Sampled* const found =
      find_evictable(std::span(room).first(size), newcomer, server_.loop().now());
  if (found == nullptr) return std::nullopt;
  ++evictions_;
  server_.counters().connections_evicted.add();
  return found->handshake != nullptr ? found->handshake->evict() : found->connection->evict();
}

void OpenConnections::release_permit() noexcept {
  all_open_.fetch_sub(1, std::memory_order_relaxed);
  if (own_ != nullptr) own_->open.fetch_sub(1, std::memory_order_relaxed);
}

void OpenConnections::add(ConnectionNode& connection) noexcept {
  open_.push_back(connection);
  server_.counters().connections_accepted.add();
  server_.counters().connections_open.add();
}

void OpenConnections::remove(ConnectionNode& connection) noexcept {
  if (next_sampled_ == &connection) next_sampled_ = open_.next(connection);
  connection.unlink();
  server_.counters().connections_open.subtract();
}

void OpenConnections::drain() {
  if (std::exchange(draining_, true)) return;
  for (ConnectionNode* each = open_.front(); each != nullptr; each = open_.next(*each)) {
    static_cast<Connection&>(*each).drain();
  }
  while (HandshakeNode* const handshake = handshakes_.pop_front()) handshake->drain();
  while (DrainNode* const websocket = websockets_.pop_front()) websocket->drain();
}

void OpenConnections::drain_unproven() {
  for (ConnectionNode* each = open_.front(); each != nullptr; each = open_.next(*each)) {
    auto& connection = static_cast<Connection&>(*each);
    if (connection.proof_ended()) connection.drain();
  }
}

}  // namespace weir::http
