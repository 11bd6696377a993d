// The simulated host: its answers, and the driver that turns loops and moves the clock.
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

MemoryHost::MemoryHost(const MemoryHostOptions& options)
    : options_(options),
      random_state_(options.seed),
      own_clock_(std::make_unique<MemoryClock>()),
      own_chance_(std::make_unique<MemoryChance>()),
      clock_(*own_clock_),
      chance_(*own_chance_),
      own_network_(std::make_unique<MemoryNetwork>(options.buffer_bytes, chance_)),
      own_datagram_network_(std::make_unique<MemoryDatagramNetwork>()),
      network_(*own_network_),
      datagram_network_(*own_datagram_network_),
      wall_start_(wall_at_start - clock_.now().time_since_epoch()),
      files_(*this),
      descriptors_(options.descriptors_max) {}

MemoryHost::MemoryHost(const MemoryHostOptions& options, const Shared& shared)
    : options_(options),
      random_state_(options.seed),
      clock_(shared.clock),
      chance_(shared.chance),
      own_network_(shared.machine == nullptr
                       ? std::make_unique<MemoryNetwork>(options.buffer_bytes, chance_)
                       : nullptr),
      own_datagram_network_(shared.machine == nullptr ? std::make_unique<MemoryDatagramNetwork>()
                                                      : nullptr),
      network_(own_network_ ? *own_network_ : shared.machine->network_),
      datagram_network_(own_datagram_network_ ? *own_datagram_network_
                                              : shared.machine->datagram_network_),
      wall_start_(wall_at_start - clock_.now().time_since_epoch()),
      files_(*this),
      descriptors_(options.descriptors_max) {}

MemoryHost::~MemoryHost() {
  assert(backends_ == 0);
}

WallTime MemoryHost::wall_time() noexcept {
  return wall_start_ + now().time_since_epoch();
}

void MemoryHost::set_wall_time(WallTime time) noexcept {
  wall_start_ = time - now().time_since_epoch();
}

std::uint64_t MemoryHost::random() {
  // SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
  std::uint64_t mixed = random_state_ += 0x9e3779b97f4a7c15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 31);
}

Result<Descriptor> MemoryHost::listen(const os::Address& address, const ListenOptions& options) {
  if (chance_.cut_off()) return fail(system_error(EINTR));
  if (descriptors_.full()) return fail(system_error(EMFILE));
  const auto backlog = static_cast<std::size_t>(std::max(options.backlog, 0));
  auto listener = network_.listen(address, {backlog, options.reuse_port, options.first});
  if (!listener) return fail(listener.error());
  auto descriptor = descriptors_.add(std::move(*listener));
  if (!descriptor) return fail(descriptor.error());
  return Descriptor(*this, *descriptor);
}

Result<Descriptor> MemoryHost::open_stream(const os::Address& peer) {
  if (peer.family() == os::AddressFamily::none) return fail(system_error(EAFNOSUPPORT));
  auto descriptor = descriptors_.add(network_.open_stream());
  if (!descriptor) return fail(descriptor.error());
  return Descriptor(*this, *descriptor);
}

Result<Descriptor> MemoryHost::open_datagrams(const DatagramOptions& options) {
  if (chance_.cut_off()) return fail(system_error(EINTR));
  if (descriptors_.full()) return fail(system_error(EMFILE));
  auto socket = datagram_network_.open(options, chance_);
  if (!socket) return fail(socket.error());
  return Descriptor(*this, descriptors_.add(std::move(*socket)).value());
}

Result<> MemoryHost::join(int datagrams, const os::MulticastGroup& group) {
  MemoryDatagramSocket* const socket = descriptors_.datagrams(datagrams);
  if (socket == nullptr) return fail(system_error(EBADF));
  return socket->join(group.address);
}

Result<> MemoryHost::leave(int datagrams, const os::MulticastGroup& group) {
  MemoryDatagramSocket* const socket = descriptors_.datagrams(datagrams);
  if (socket == nullptr) return fail(system_error(EBADF));
  return socket->leave(group.address);
}

Result<> MemoryHost::configure(int descriptor, const StreamOptions&) {
  if (descriptors_.find(descriptor) == nullptr) return fail(system_error(EBADF));
  return {};
}

Result<os::Address> MemoryHost::local_address(int descriptor) {
  const MemoryEndpoint* const endpoint = descriptors_.find(descriptor);
  if (endpoint == nullptr) return fail(system_error(EBADF));
  return endpoint->local();
}

Result<os::Address> MemoryHost::peer_address(int descriptor) {
  if (const MemoryDatagramSocket* const socket = descriptors_.datagrams(descriptor)) {
    if (socket->peer().family() == os::AddressFamily::none) return fail(system_error(ENOTCONN));
    return socket->peer();
  }
  const MemoryStream* const stream = descriptors_.stream(descriptor);
  if (stream == nullptr) return fail(system_error(EBADF));
  if (!stream->connected()) return fail(system_error(ENOTCONN));
  return stream->peer_address();
}

Result<std::size_t> MemoryHost::unacknowledged(int descriptor) {
  const MemoryStream* const stream = descriptors_.stream(descriptor);
  if (stream == nullptr) return fail(system_error(EBADF));
  return stream->on_the_way();
}

Result<> MemoryHost::refuse_new_connections(int listener) {
  MemoryListener* const found = descriptors_.listener(listener);
  if (found == nullptr) return fail(system_error(EBADF));
  found->refuse();
  return {};
}

Result<Descriptor> MemoryHost::share(int listener) {
  auto duplicate = descriptors_.duplicate(listener);
  if (!duplicate) return fail(duplicate.error());
  return Descriptor(*this, *duplicate);
}

os::Topology MemoryHost::topology() {
  os::Topology topology;
  for (std::size_t cpu = 0; cpu < options_.cores; ++cpu) {
    topology.cores.push_back({static_cast<int>(cpu), 0});
  }
  topology.cpus_online = topology.cpus_allowed = topology.physical_cores = options_.cores;
  topology.cut_by_quota = options_.cut_by_quota;
  topology.explanation = std::to_string(options_.cores) + " simulated";
  return topology;
}

Host::DescriptorLimit MemoryHost::descriptor_limit() {
  return {descriptors_.open_max(), "simulated"};
}

Result<ChosenBackend> MemoryHost::make_backend(BackendChoice choice, RunQueue& ready) {
  if (choice != BackendChoice::automatic) return fail(Errc::unsupported);
  return ChosenBackend{std::make_unique<MemoryBackend>(*this, ready), "simulated host"};
}

std::unique_ptr<HostThread> MemoryHost::make_thread(const HostThreadOptions&, ThreadWork& work) {
  return std::make_unique<MemoryThread>(clock_, chance_, threads_, work);
}

MemoryClock::EventId MemoryHost::at(Instant moment, MemoryClock::Event event) {
  return clock_.at(moment, std::move(event));
}

void MemoryHost::reset_connection(int descriptor) {
  if (MemoryStream* const stream = descriptors_.stream(descriptor)) stream->reset();
}

std::optional<Signal> MemoryHost::take_signal() {
  if (signals_.empty()) return std::nullopt;
  const Signal signal = signals_.front();
  signals_.pop_front();
  return signal;
}

bool MemoryHost::pass_time(Instant until) {
  if (backends_ > 1 || until <= now()) return false;
  const Instant next = std::min(until, clock_.next());
  if (next == never) return false;
  clock_.move_to(next);
  return true;
}

bool MemoryHost::turn_each(std::span<Loop* const> loops) {
  bool did = clock_.move_to(now());
  for (Loop* const loop : loops) {
    if (!loop->stopping() && loop->turn(now())) did = true;
  }
  return did || std::ranges::any_of(loops, [](Loop* loop) {
           return !loop->stopping() && (loop->has_work() || backend_of(*loop).has_work());
         });
}

Instant MemoryHost::next_moment(std::span<Loop* const> loops) const {
  Instant next = clock_.next();
  for (Loop* const loop : loops) {
    if (!loop->stopping()) next = std::min(next, loop->timers().next());
  }
  return next;
}

Result<> MemoryHost::run(std::span<const LoopPlace> places, RunControl* control) {
  std::vector<Loop*> loops;
  for (const LoopPlace& place : places) loops.push_back(place.loop);
  const auto stopped = [&] {
    return std::ranges::all_of(loops, [](const Loop* loop) { return loop->stopping(); });
  };
  while (!stopped()) {
    if (const auto signal = take_signal()) {
      if (control == nullptr) return fail(system_error(EINTR));
      control->signalled(*signal);
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

void MemoryHost::log_deadlock(std::span<Loop* const> loops) {
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

void MemoryHost::run_until_idle(std::span<Loop* const> loops) {
  while (turn_each(loops)) {
  }
}

void MemoryHost::advance(std::span<Loop* const> loops, Duration length) {
  const Instant end = after(now(), length);
  for (;;) {
    run_until_idle(loops);
    const Instant next = next_moment(loops);
    if (next > end) break;
    clock_.move_to(next);
  }
  clock_.move_to(end);
}

bool MemoryHost::run_until(std::span<Loop* const> loops, const std::function<bool()>& done) {
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
