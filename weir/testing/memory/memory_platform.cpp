// The simulated platform, and the driver that turns loops and moves the clock.
#include "weir/testing/memory/memory_platform.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/testing/memory/detail/memory_backend.hpp"

namespace weir {
namespace {

// 2025-01-01T00:00:00Z
constexpr WallTime wall_at_start{std::chrono::seconds(1'735'689'600)};

MemoryBackend& backend_of(Loop& loop) {
  assert(loop.backend().name() == "memory");
  return static_cast<MemoryBackend&>(loop.backend());
}

}  // namespace

MemoryPlatform::MemoryPlatform(const MemoryPlatformOptions& options)
    : options_(options),
      random_state_(options.seed),
      own_clock_(std::make_unique<MemoryClock>()),
      own_nondeterminism_(std::make_unique<Nondeterminism>()),
      clock_(*own_clock_),
      nondeterminism_(*own_nondeterminism_),
      own_network_(std::make_unique<MemoryNetwork>(options.buffer_bytes, nondeterminism_)),
      own_datagram_network_(std::make_unique<MemoryDatagramNetwork>()),
      network_(*own_network_),
      datagram_network_(*own_datagram_network_),
      wall_start_(wall_at_start - clock_.now().time_since_epoch()),
      files_(*this),
      descriptors_(options.descriptors_max) {}

MemoryPlatform::MemoryPlatform(const MemoryPlatformOptions& options, const Shared& shared)
    : options_(options),
      random_state_(options.seed),
      clock_(shared.clock),
      nondeterminism_(shared.nondeterminism),
      own_network_(shared.machine == nullptr
                       ? std::make_unique<MemoryNetwork>(options.buffer_bytes, nondeterminism_)
                       : nullptr),
      own_datagram_network_(shared.machine == nullptr ? std::make_unique<MemoryDatagramNetwork>()
                                                      : nullptr),
      network_(own_network_ ? *own_network_ : shared.machine->network_),
      datagram_network_(own_datagram_network_ ? *own_datagram_network_
                                              : shared.machine->datagram_network_),
      wall_start_(wall_at_start - MemoryClock().now().time_since_epoch()),
      files_(*this),
      descriptors_(options.descriptors_max) {}

MemoryPlatform::~MemoryPlatform() {
  assert(backends_ == 0);
}

WallTime MemoryPlatform::wall_time() noexcept {
  return wall_start_ + now().time_since_epoch();
}

void MemoryPlatform::set_wall_time(WallTime time) noexcept {
  wall_start_ = time - now().time_since_epoch();
}

std::uint64_t MemoryPlatform::random() {
  // SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
  std::uint64_t mixed = random_state_ += 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 31);
}

Result<loop::Descriptor> MemoryPlatform::listen(const os::Address& address,
                                                const ListenOptions& options) {
  if (nondeterminism_.is_isolated()) return fail(system_error(EINTR));
  if (descriptors_.full()) return fail(system_error(EMFILE));
  const auto backlog = static_cast<std::size_t>(std::max(options.backlog, 0));
  WEIR_TRY(auto listener,
           network_.listen(address, {backlog, options.reuse_port, options.require_unused}));
  WEIR_TRY(auto descriptor, descriptors_.add(std::move(listener)));
  return loop::Descriptor(*this, descriptor);
}

Result<loop::Descriptor> MemoryPlatform::open_stream(const os::Address& peer) {
  if (peer.family() == os::AddressFamily::none) return fail(system_error(EAFNOSUPPORT));
  WEIR_TRY(auto descriptor, descriptors_.add(network_.open_stream()));
  return loop::Descriptor(*this, descriptor);
}

Result<loop::Descriptor> MemoryPlatform::open_datagrams(const loop::DatagramOptions& options) {
  if (nondeterminism_.is_isolated()) return fail(system_error(EINTR));
  if (descriptors_.full()) return fail(system_error(EMFILE));
  WEIR_TRY(auto socket, datagram_network_.open(options, nondeterminism_));
  return loop::Descriptor(*this, descriptors_.add(std::move(socket)).value());
}

Result<> MemoryPlatform::join_group(int datagrams, const os::MulticastGroup& group) {
  MemoryDatagramSocket* const socket = descriptors_.datagrams(datagrams);
  if (socket == nullptr) return fail(system_error(EBADF));
  return socket->join(group.address);
}

Result<> MemoryPlatform::leave_group(int datagrams, const os::MulticastGroup& group) {
  MemoryDatagramSocket* const socket = descriptors_.datagrams(datagrams);
  if (socket == nullptr) return fail(system_error(EBADF));
  return socket->leave(group.address);
}

Result<> MemoryPlatform::configure(int descriptor, const loop::StreamOptions&) {
  if (descriptors_.find(descriptor) == nullptr) return fail(system_error(EBADF));
  return {};
}

Result<> MemoryPlatform::set_close_mode(int descriptor, CloseMode mode) {
  MemoryStream* const stream = descriptors_.stream(descriptor);
  if (stream == nullptr) return fail(system_error(EBADF));
  stream->set_close_mode(mode);
  return {};
}

Result<os::Address> MemoryPlatform::local_address(int descriptor) {
  const MemoryEndpoint* const endpoint = descriptors_.find(descriptor);
  if (endpoint == nullptr) return fail(system_error(EBADF));
  return endpoint->local();
}

Result<os::Address> MemoryPlatform::peer_address(int descriptor) {
  if (const MemoryDatagramSocket* const socket = descriptors_.datagrams(descriptor)) {
    if (socket->peer().family() == os::AddressFamily::none) return fail(system_error(ENOTCONN));
    return socket->peer();
  }
  const MemoryStream* const stream = descriptors_.stream(descriptor);
  if (stream == nullptr) return fail(system_error(EBADF));
  const bool forgotten = stream->was_reset() && stream->peer_address().is_inet();
  if (!stream->connected() || forgotten) return fail(system_error(ENOTCONN));
  return stream->peer_address();
}

Result<std::size_t> MemoryPlatform::unacked_bytes(int descriptor) {
  const MemoryStream* const stream = descriptors_.stream(descriptor);
  if (stream == nullptr) return fail(system_error(EBADF));
  return stream->in_flight_bytes();
}

Result<> MemoryPlatform::refuse_new_connections(int listener) {
  MemoryListener* const found = descriptors_.listener(listener);
  if (found == nullptr) return fail(system_error(EBADF));
  found->refuse();
  return {};
}

Result<loop::Descriptor> MemoryPlatform::share(int listener) {
  WEIR_TRY(auto duplicate, descriptors_.duplicate(listener));
  return loop::Descriptor(*this, duplicate);
}

os::Topology MemoryPlatform::topology() {
  os::Topology topology;
  for (std::size_t cpu = 0; cpu < options_.cores; ++cpu) {
    topology.cores.push_back({static_cast<int>(cpu), 0});
  }
  topology.cpus_online = topology.cpus_allowed = topology.physical_cores = options_.cores;
  topology.limited_by_quota = options_.limited_by_quota;
  topology.explanation = std::to_string(options_.cores) + " simulated";
  return topology;
}

loop::Platform::DescriptorLimit MemoryPlatform::descriptor_limit() {
  return {descriptors_.open_max(), "simulated"};
}

Result<loop::ChosenBackend> MemoryPlatform::make_backend(BackendChoice choice,
                                                         loop::RunQueue& ready) {
  if (choice != BackendChoice::automatic) return fail(Errc::unsupported);
  return loop::ChosenBackend{std::make_unique<MemoryBackend>(*this, ready), "simulated platform"};
}

std::unique_ptr<loop::PlatformThread> MemoryPlatform::make_thread(
    const loop::PlatformThreadOptions&, loop::ThreadWork& work) {
  return std::make_unique<MemoryThread>(clock_, nondeterminism_, threads_, work);
}

MemoryClock::EventId MemoryPlatform::at(Instant moment, MemoryClock::Event event) {
  return clock_.at(moment, std::move(event));
}

void MemoryPlatform::reset_connection(int descriptor) {
  if (MemoryStream* const stream = descriptors_.stream(descriptor)) stream->reset();
}

std::optional<loop::Signal> MemoryPlatform::take_signal() {
  if (signals_.empty()) return std::nullopt;
  const loop::Signal signal = signals_.front();
  signals_.pop_front();
  return signal;
}

bool MemoryPlatform::pass_time(Instant until) {
  if (backends_ > 1 || until <= now()) return false;
  const Instant next = std::min(until, clock_.next());
  if (next == never) return false;
  clock_.move_to(next);
  return true;
}

bool MemoryPlatform::turn_each(std::span<Loop* const> loops) {
  bool did = clock_.move_to(now());
  for (Loop* const loop : loops) {
    if (!loop->stopping() && loop->turn(now())) did = true;
  }
  return did || std::ranges::any_of(loops, [](Loop* loop) {
           return !loop->stopping() && (loop->has_work() || backend_of(*loop).has_work());
         });
}

Instant MemoryPlatform::next_moment(std::span<Loop* const> loops) const {
  Instant next = clock_.next();
  for (Loop* const loop : loops) {
    if (!loop->stopping()) next = std::min(next, loop->timers().next());
  }
  return next;
}

Result<> MemoryPlatform::run(std::span<const loop::LoopPlacement> placements,
                             loop::RunControl* control) {
  std::vector<Loop*> loops;
  for (const loop::LoopPlacement& placement : placements) loops.push_back(placement.loop);
  const auto stopped = [&] {
    return std::ranges::all_of(loops, [](const Loop* loop) { return loop->stopping(); });
  };
  while (!stopped()) {
    if (const auto signal = take_signal()) {
      if (control == nullptr) return fail(system_error(EINTR));
      control->on_signal(*signal);
    }
    if (turn_each(loops) || !signals_.empty() || stopped()) continue;
    const Instant next = next_moment(loops);
    if (next == never) {
      log_deadlock(loops);
      return fail(system_error(EDEADLK));
    }
    clock_.move_to(next);
  }
  return {};
}

void MemoryPlatform::log_deadlock(std::span<Loop* const> loops) {
  std::string line = "deadlock: nothing is ready, no timer is armed and nothing is scheduled";
  for (Loop* const loop : loops) {
    const std::string pending = backend_of(*loop).pending();
    line += "; loop " + std::to_string(loop->core());
    if (loop->stopping()) {
      line += " has stopped";
    } else {
      line += " waits for " + (pending.empty() ? std::string("nothing") : pending);
    }
  }
  log(line);
}

void MemoryPlatform::run_until_idle(std::span<Loop* const> loops) {
  while (turn_each(loops)) {
  }
}

void MemoryPlatform::advance(std::span<Loop* const> loops, Duration length) {
  const Instant end = after(now(), length);
  for (;;) {
    run_until_idle(loops);
    const Instant next = next_moment(loops);
    if (next > end) break;
    clock_.move_to(next);
  }
  clock_.move_to(end);
}

bool MemoryPlatform::run_until(std::span<Loop* const> loops, const std::function<bool()>& done) {
  while (!done()) {
    if (turn_each(loops)) continue;
    const Instant next = next_moment(loops);
    if (done()) break;
    if (next == never) return false;
    clock_.move_to(next);
  }
  return true;
}

}  // namespace weir
