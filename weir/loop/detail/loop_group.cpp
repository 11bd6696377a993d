#include "weir/loop/loop_group.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

namespace weir {
namespace {

/// Whether who asks for the one address means what listens on the other.
bool means(const os::Address& asked, const os::Address& bound) {
  const os::Address wanted = asked.port() == 0 ? asked.with_port(bound.port()) : asked;
  if (wanted == bound) return true;
  // What becomes of [::] on a machine without IPv6.
  return wanted.is_any() && bound.is_any() && wanted.port() == bound.port() &&
         wanted.family() == os::AddressFamily::ipv6;
}

}  // namespace

Result<LoopGroup::Listener> LoopGroup::listen(Host& host, const os::Address& address,
                                              const ListenOptions& options) {
  const std::lock_guard lock(mutex_);
  return open(host, address, options);
}

void LoopGroup::note_failure(std::string_view what, const os::Address& address,
                             std::error_code error) {
  // A drain closes what this process has been given; where there is none, that needs explaining.
  const std::string why = error == Errc::closed
                              ? "it was closed here, and who gave it to this process has it still"
                              : error.message();
  const std::lock_guard lock(mutex_);
  failure_ = "cannot " + std::string(what) + " " + address.to_string() + ": " + why;
}

std::string LoopGroup::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

LoopGroup::Listening* LoopGroup::find(const os::Address& asked) {
  std::erase_if(listening_, [](const Listening& each) {
    return each.bound.family() == os::AddressFamily::local && each.shared.expired() &&
           each.inherited.empty();
  });
  const auto known = std::ranges::find_if(listening_, [&](const Listening& each) {
    return each.asked == asked || each.bound == asked;
  });
  return known == listening_.end() ? find_inherited(asked) : &*known;
}

/// Begins to listen on those that were inherited for the address, if any were.
LoopGroup::Listening* LoopGroup::find_inherited(const os::Address& asked) {
  const auto first = std::ranges::find_if(
      inherited_, [&](const auto& each) { return means(asked, each->bound()); });
  if (first == inherited_.end()) return nullptr;
  Listening listening{.asked = asked, .bound = (*first)->bound()};
  std::erase_if(inherited_, [&](std::shared_ptr<SharedListener>& each) {
    if (each->bound() != listening.bound) return false;
    listening.inherited.push_back(std::move(each));
    return true;
  });
  if (on_listening) on_listening(listening.bound);
  return &listening_.emplace_back(std::move(listening));
}

Result<LoopGroup::Listener> LoopGroup::open(Host& host, const os::Address& address,
                                            const ListenOptions& options) {
  Listening* const known = find(address);
  if (known == nullptr) return open_first(host, address, options);
  return known->inherited.empty() ? open_another(host, *known, options) : give_inherited(*known);
}

Result<LoopGroup::Listener> LoopGroup::open_first(Host& host, const os::Address& asked,
                                                  const ListenOptions& options) {
  // The loops of this group share the port, but with nobody else.
  ListenOptions alone = options;
  alone.first = true;
  auto listener = host.listen(asked, alone);
  if (!listener) return fail(listener.error());
  auto bound = host.local_address(listener->value());
  if (!bound) return fail(bound.error());
  auto shared = keep(host, *listener, *bound);
  if (!shared) return fail(shared.error());
  listening_.push_back({.asked = asked, .bound = *bound, .shared = *shared});
  if (on_listening) on_listening(*bound);
  return Listener{std::move(*listener), std::move(*shared), {}, balance_on(*bound)};
}

/// Nothing for a socket that is this loop's alone.
Result<std::shared_ptr<SharedListener>> LoopGroup::keep(Host& host, const Descriptor& listener,
                                                        const os::Address& bound) {
  std::shared_ptr<SharedListener> kept;
  if (!keeps_listeners_ && bound.family() != os::AddressFamily::local) return kept;
  auto own = host.share(listener.value());
  if (!own) return fail(own.error());
  kept = std::make_shared<SharedListener>(host, std::move(*own), bound);
  kept->on_stopped = on_stopped;
  std::erase_if(kept_, [](const auto& each) { return each.expired(); });
  kept_.push_back(kept);
  return kept;
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
  const bool first = known == datagrams_.end();
  if (!first) own.local = known->bound;
  // Of a port that the kernel chooses no other process knows.
  own.first = first && (!shares_ports_ || own.local.port() == 0);
  auto socket = host.open_datagrams(own);
  if (!socket && own.first && takes_over_ && socket.error() == system_error(EADDRINUSE)) {
    // It is the older process', which shares it as loops do.
    own.first = false;
    socket = host.open_datagrams(own);
  }
  if (!socket || !first) return socket;
  auto bound = host.local_address(socket->value());
  if (!bound) return fail(bound.error());
  datagrams_.push_back({options.local, *bound});
  if (on_listening) on_listening(*bound);
  return socket;
}

/// Those that were inherited take turns.
std::shared_ptr<SharedListener> LoopGroup::next_to_share(Listening& listening) {
  std::erase_if(listening.given, [](const auto& each) { return each.expired(); });
  if (listening.given.empty()) return listening.shared.lock();
  std::ranges::rotate(listening.given, listening.given.begin() + 1);
  return listening.given.back().lock();
}

Result<LoopGroup::Listener> LoopGroup::open_another(Host& host, Listening& first,
                                                    const ListenOptions& options) {
  std::shared_ptr<SharedListener> shared = next_to_share(first);
  Balance* const balance = balance_on(first.bound);
  const bool local = first.bound.family() == os::AddressFamily::local;
  // One more socket of a port has its share of newcomers from its first moment on. While it is not
  // sure that this process goes on, nobody would serve those.
  const bool elsewhere_too = shared != nullptr && (shared->held() || shared->awaited());
  if (shared != nullptr && (local || elsewhere_too)) {
    if (!options.reuse_port) return fail(system_error(EADDRINUSE));
    auto another = shared->share();
    if (!another) return fail(another.error());
    return Listener{std::move(*another), std::move(shared), {}, balance};
  }
  auto listener = host.listen(first.bound, options);
  if (!listener) {
    // What was inherited may have been opened by somebody who shares no port.
    const bool taken = listener.error() == system_error(EADDRINUSE);
    // Or the loops that had it have closed it, because they drain, and who gave it has it still.
    if (taken && shared == nullptr && first.loops != 0) return fail(Errc::closed);
    if (!taken || shared == nullptr || !options.reuse_port) return fail(listener.error());
    listener = shared->share();
    if (!listener) return fail(listener.error());
    return Listener{std::move(*listener), std::move(shared), {}, balance};
  }
  auto kept = keep(host, *listener, first.bound);
  if (!kept) return fail(kept.error());
  return Listener{std::move(*listener), std::move(*kept), {}, balance};
}

/// An even share for one more loop.
Result<LoopGroup::Listener> LoopGroup::give_inherited(Listening& listening) {
  const std::size_t loops = std::max(loops_.size(), listening.loops + 1) - listening.loops;
  const std::size_t count = (listening.inherited.size() + loops - 1) / loops;
  ++listening.loops;
  Listener given;
  given.shared = listening.inherited.front();
  auto descriptor = given.shared->share();
  if (!descriptor) return fail(descriptor.error());
  given.descriptor = std::move(*descriptor);
  const auto rest = listening.inherited.begin() + 1;
  const auto end = listening.inherited.begin() + static_cast<std::ptrdiff_t>(count);
  given.further.assign(std::make_move_iterator(rest), std::make_move_iterator(end));
  listening.inherited.erase(listening.inherited.begin(), end);
  listening.shared = given.shared;
  listening.given.push_back(given.shared);
  given.balance = balance_on(listening.bound);
  return given;
}

void LoopGroup::inherit(std::vector<std::shared_ptr<SharedListener>> sockets) {
  const std::lock_guard lock(mutex_);
  for (std::shared_ptr<SharedListener>& each : sockets) {
    each->on_stopped = on_stopped;
    if (each->awaited()) {
      ++awaited_;
      takes_over_ = true;
    }
    kept_.push_back(each);
    inherited_.push_back(std::move(each));
  }
}

std::vector<std::shared_ptr<SharedListener>> LoopGroup::listeners() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<SharedListener>> open;
  for (const auto& each : kept_) {
    if (auto listener = each.lock()) open.push_back(std::move(listener));
  }
  return open;
}

void LoopGroup::asked_to_accept(std::size_t awaited) {
  {
    const std::lock_guard lock(mutex_);
    awaited_ -= std::min(awaited, awaited_);
    if (awaited_ != 0) return;
  }
  if (on_accepting) on_accepting();
}

std::string LoopGroup::awaited() const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> addresses;
  const auto note = [&](const std::vector<std::shared_ptr<SharedListener>>& sockets) {
    for (const auto& each : sockets) {
      if (each->awaited()) addresses.insert(each->bound().to_string());
    }
  };
  note(inherited_);
  for (const Listening& each : listening_) note(each.inherited);
  std::string text;
  for (const std::string& each : addresses) text += (text.empty() ? "" : ", ") + each;
  return text;
}

}  // namespace weir
