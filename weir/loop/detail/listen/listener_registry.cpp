#include "weir/loop/detail/listen/listener_registry.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

namespace weir::loop {
namespace {

bool is_any_port(const os::Address& asked) {
  return asked.family() != os::AddressFamily::local && asked.port() == 0;
}

/// Returns true if a request for `asked` may use a socket that listens on `bound`.
bool matches_address(const os::Address& asked, const os::Address& bound) {
  const os::Address wanted = asked.port() == 0 ? asked.with_port(bound.port()) : asked;
  if (wanted == bound) return true;
  // [::] becomes 0.0.0.0 on a machine without IPv6.
  return wanted.is_any() && bound.is_any() && wanted.port() == bound.port() &&
         wanted.family() == os::AddressFamily::ipv6;
}

}  // namespace

Result<ListenerRegistry::Listener> ListenerRegistry::listen(PlatformNetwork& network,
                                                            const os::Address& address,
                                                            const ListenOptions& options,
                                                            const void* owner) {
  const std::lock_guard lock(mutex_);
  return open(network, address, options, owner);
}

void ListenerRegistry::record_failure(std::string_view what, const os::Address& address,
                                      std::error_code error,
                                      const std::optional<os::Address>& holder) {
  // A drain closes the sockets that this process was given. An error outside a drain needs an
  // explanation.
  std::string why =
      error == Errc::closed
          ? "this process closed the socket, and the process that provided it still has it open"
          : error.message();
  if (holder) why += ": this process has a socket at " + holder->to_string();
  const std::lock_guard lock(mutex_);
  failure_ = "cannot " + std::string(what) + " " + address.to_string() + ": " + why;
}

std::string ListenerRegistry::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

ListenerRegistry::ListenEntry* ListenerRegistry::find(const os::Address& asked, const void* owner) {
  std::erase_if(listen_entries_, [](const ListenEntry& each) {
    return each.bound.family() == os::AddressFamily::local && each.shared.expired() &&
           each.inherited.empty();
  });
  const auto known = std::ranges::find_if(listen_entries_, [&](const ListenEntry& each) {
    if (is_any_port(asked) && held_by_listeners_.holds(owner, each.bound)) return false;
    return each.asked == asked || each.bound == asked;
  });
  return known == listen_entries_.end() ? find_inherited(asked) : &*known;
}

/// Adds an entry with the sockets that were inherited for the address, if there are any.
ListenerRegistry::ListenEntry* ListenerRegistry::find_inherited(const os::Address& asked) {
  const auto first = std::ranges::find_if(
      inherited_, [&](const auto& each) { return matches_address(asked, each->bound()); });
  if (first == inherited_.end()) return nullptr;
  ListenEntry entry{.asked = asked, .bound = (*first)->bound()};
  std::erase_if(inherited_, [&](std::shared_ptr<SharedListener>& each) {
    if (each->bound() != entry.bound) return false;
    entry.inherited.push_back(std::move(each));
    return true;
  });
  if (on_listening) on_listening(entry.bound);
  return &listen_entries_.emplace_back(std::move(entry));
}

Result<ListenerRegistry::Listener> ListenerRegistry::open(PlatformNetwork& network,
                                                          const os::Address& address,
                                                          const ListenOptions& options,
                                                          const void* owner) {
  ListenEntry* const known = find(address, owner);
  if (known == nullptr) return open_first(network, address, options);
  return known->inherited.empty() ? open_another(network, *known, options)
                                  : assign_inherited(*known);
}

Result<ListenerRegistry::Listener> ListenerRegistry::open_first(PlatformNetwork& network,
                                                                const os::Address& asked,
                                                                const ListenOptions& options) {
  // The loops of this registry share the port with each other and with no other socket.
  ListenOptions alone = options;
  alone.require_unused = true;
  WEIR_TRY(auto listener, network.listen(asked, alone));
  WEIR_TRY(auto bound, network.local_address(listener.value()));
  WEIR_TRY(auto shared, track(network, listener, bound));
  listen_entries_.push_back({.asked = asked, .bound = bound, .shared = shared});
  if (on_listening) on_listening(bound);
  return Listener{std::move(listener), std::move(shared), {}, bound};
}

/// Returns nullptr for a socket that only this loop uses.
Result<std::shared_ptr<SharedListener>> ListenerRegistry::track(PlatformNetwork& network,
                                                                const Descriptor& listener,
                                                                const os::Address& bound) {
  std::shared_ptr<SharedListener> kept;
  if (!tracks_listeners_ && bound.family() != os::AddressFamily::local) return kept;
  WEIR_TRY(auto own, network.share(listener.value()));
  kept = std::make_shared<SharedListener>(network, std::move(own), bound);
  kept->on_stopped = on_stopped;
  std::erase_if(tracked_, [](const auto& each) { return each.expired(); });
  tracked_.push_back(kept);
  return kept;
}

Result<Descriptor> ListenerRegistry::open_datagrams(PlatformNetwork& network,
                                                    const DatagramOptions& options,
                                                    const void* owner) {
  if (!options.reuse_port) return network.open_datagrams(options);
  const std::lock_guard lock(mutex_);
  const auto known =
      std::find_if(datagrams_.begin(), datagrams_.end(), [&](const DatagramBinding& each) {
        if (is_any_port(options.local) && held_by_datagrams_.holds(owner, each.bound)) return false;
        return each.asked == options.local || each.bound == options.local;
      });
  DatagramOptions own = options;
  const bool first = known == datagrams_.end();
  if (!first) own.local = known->bound;
  // A port that the kernel has just chosen is unknown to other processes.
  own.require_unused = first && (!shares_ports_ || own.local.port() == 0);
  auto socket = network.open_datagrams(own);
  if (!socket && own.require_unused && hot_restarting_ &&
      socket.error() == system_error(EADDRINUSE)) {
    // The older process has the port and shares it like a loop of this registry.
    own.require_unused = false;
    socket = network.open_datagrams(own);
  }
  if (!socket || !first) return socket;
  WEIR_TRY(auto bound, network.local_address(socket->value()));
  datagrams_.push_back({options.local, bound});
  if (on_receiving) on_receiving(bound);
  return socket;
}

/// Returns the socket for one more loop to share; inherited sockets take turns.
std::shared_ptr<SharedListener> ListenerRegistry::next_to_share(ListenEntry& entry) {
  std::erase_if(entry.assigned, [](const auto& each) { return each.expired(); });
  if (entry.assigned.empty()) return entry.shared.lock();
  std::ranges::rotate(entry.assigned, entry.assigned.begin() + 1);
  return entry.assigned.back().lock();
}

Result<ListenerRegistry::Listener> ListenerRegistry::open_another(PlatformNetwork& network,
                                                                  ListenEntry& first,
                                                                  const ListenOptions& options) {
  std::shared_ptr<SharedListener> shared = next_to_share(first);
  const bool local = first.bound.family() == os::AddressFamily::local;
  // Another socket of a port gets its share of new connections from its first moment on. No
  // process would serve them if this process does not go on.
  const bool elsewhere_too =
      shared != nullptr && (shared->externally_owned() || shared->peer_waits_for_accept());
  if (shared != nullptr && (local || elsewhere_too)) {
    if (!options.reuse_port) return fail(system_error(EADDRINUSE));
    WEIR_TRY(auto another, shared->share());
    return Listener{std::move(another), std::move(shared), {}, first.bound};
  }
  auto listener = network.listen(first.bound, options);
  if (!listener) {
    // An inherited socket may have been opened without port sharing.
    const bool taken = listener.error() == system_error(EADDRINUSE);
    // The loops that had it may also have closed it in a drain, while the process that passed it
    // on still has it.
    if (taken && shared == nullptr && first.loops != 0) return fail(Errc::closed);
    if (!taken || shared == nullptr || !options.reuse_port) return fail(listener.error());
    listener = shared->share();
    if (!listener) return fail(listener.error());
    return Listener{std::move(*listener), std::move(shared), {}, first.bound};
  }
  WEIR_TRY(auto kept, track(network, *listener, first.bound));
  return Listener{std::move(*listener), std::move(kept), {}, first.bound};
}

/// Returns an even share of the inherited sockets for one more loop.
Result<ListenerRegistry::Listener> ListenerRegistry::assign_inherited(ListenEntry& entry) {
  const std::size_t loops = std::max(loop_count_, entry.loops + 1) - entry.loops;
  const std::size_t count = (entry.inherited.size() + loops - 1) / loops;
  ++entry.loops;
  Listener given;
  given.shared = entry.inherited.front();
  WEIR_TRY(auto descriptor, given.shared->share());
  given.descriptor = std::move(descriptor);
  const auto rest = entry.inherited.begin() + 1;
  const auto end = entry.inherited.begin() + static_cast<std::ptrdiff_t>(count);
  given.additional.assign(std::make_move_iterator(rest), std::make_move_iterator(end));
  entry.inherited.erase(entry.inherited.begin(), end);
  entry.shared = given.shared;
  entry.assigned.push_back(given.shared);
  given.bound = entry.bound;
  return given;
}

void ListenerRegistry::inherit(std::vector<std::shared_ptr<SharedListener>> sockets) {
  const std::lock_guard lock(mutex_);
  for (std::shared_ptr<SharedListener>& each : sockets) {
    each->on_stopped = on_stopped;
    if (each->peer_waits_for_accept()) {
      ++sockets_not_accepting_;
      hot_restarting_ = true;
    }
    tracked_.push_back(each);
    inherited_.push_back(std::move(each));
  }
}

std::vector<std::shared_ptr<SharedListener>> ListenerRegistry::listeners() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<SharedListener>> open;
  for (const auto& each : tracked_) {
    if (auto listener = each.lock()) open.push_back(std::move(listener));
  }
  return open;
}

void ListenerRegistry::on_accept_requested(std::size_t awaited) {
  {
    const std::lock_guard lock(mutex_);
    sockets_not_accepting_ -= std::min(awaited, sockets_not_accepting_);
    if (sockets_not_accepting_ != 0) return;
  }
  if (on_accepting) on_accepting();
}

std::string ListenerRegistry::unaccepted_addresses() const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> addresses;
  const auto note = [&](const std::vector<std::shared_ptr<SharedListener>>& sockets) {
    for (const auto& each : sockets) {
      if (each->peer_waits_for_accept()) addresses.insert(each->bound().to_string());
    }
  };
  note(inherited_);
  for (const ListenEntry& each : listen_entries_) note(each.inherited);
  std::string text;
  for (const std::string& each : addresses) text += (text.empty() ? "" : ", ") + each;
  return text;
}

}  // namespace weir::loop
