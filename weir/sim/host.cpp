// A host of a World: its main functions, handovers and kills, and the checks at its end.
#include "weir/sim/host.hpp"

#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/sim/detail/handover_endpoint.hpp"
#include "weir/testing/memory/detail/memory_backend.hpp"

namespace weir::sim {
namespace {

MemoryPlatformOptions options_for(const HostOptions& options, WorldState& state) {
  return {.seed = state.random.next(),
          .cores = options.cores,
          .buffer_bytes = options.buffer_bytes,
          .descriptors_max = options.descriptors_max,
          .files = options.files};
}

Endpoint address_of(unsigned number) {
  const auto byte = [number](unsigned place) {
    return static_cast<std::uint8_t>((number + 1) >> (8 * place));
  };
  return Endpoint::ipv4({10, byte(2), byte(1), byte(0)}, 0);
}

}  // namespace

Host::Host(WorldState& state, std::string name, unsigned number, const HostOptions& options)
    : Host(state, name, address_of(number), nullptr, options,
           std::make_unique<SeededNondeterminism>(state, name)) {}

Host::Host(WorldState& state, std::string name, Host& machine, const HostOptions& options)
    : Host(state, name, machine.address_, &machine, options,
           std::make_unique<SeededNondeterminism>(state, name)) {}

Host::Host(WorldState& state, std::string name, const Endpoint& address, Host* machine,
           const HostOptions& options, std::unique_ptr<SeededNondeterminism> nondeterminism)
    : MemoryPlatform(options_for(options, state), {state.clock, *nondeterminism, machine}),
      state_(state),
      name_(std::move(name)),
      address_(address),
      nondeterminism_(std::move(nondeterminism)),
      rendezvous_(machine == nullptr ? std::make_shared<SimRendezvousMap>()
                                     : machine->rendezvous_) {}

Host::~Host() = default;

void Host::begin(MainFunction main, bool service) {
  terminate_sent = false;
  if (killed_ && !has_returned()) {
    next_ = std::move(main);
    next_is_service_ = service;
    return;
  }
  if (!has_returned()) {
    std::fprintf(stderr,
                 "weir: %s: cannot start: its main function still runs (wait for its return, or "
                 "call kill())\n",
                 name_.c_str());
    std::abort();
  }
  launch(std::move(main), service);
}

void Host::launch(MainFunction main, bool service) {
  record_failure();
  service_ = service;
  killed_ = kill_seen_ = false;
  handover_steps_ = 0;
  nondeterminism_->set_isolated(false);
  status_.reset();
  failure_recorded_ = false;
  main_ = std::make_unique<HostMain>([this, main = std::move(main)] {
    const weir::detail::RandomSource::Use use(state_.library_random);
    thrown_ = thrown_by([&] { status_ = main(*this); });
  });
}

/// Records the failure of a main that has returned. The result of a killed main is no failure.
void Host::record_failure() {
  if (!killed_ && thrown_) failures_.push_back(name_ + ": main threw " + *thrown_);
  if (!killed_ && status_.value_or(0) != 0 && !failure_recorded_) {
    failures_.push_back(name_ + ": main returned " + std::to_string(*status_));
  }
  failure_recorded_ = true;
  thrown_.reset();
}

void Host::kill() {
  if (killed_ || done()) return;
  killed_ = true;
  kill_step_.reset();
  while (take_signal()) {
  }
  if (state_.trace.on()) state_.trace.note(name_ + " is killed");
  nondeterminism_->set_isolated(true);
  set_paused_until(Instant::min());
  lost_ = connections();
  if (handover_endpoint_ != nullptr) handover_endpoint_->abandon();
  descriptors().close_on_kill();
}

bool Host::listens() const {
  return descriptors().listens();
}

loop::HandoverStart Host::begin_handover(const HandoverOptions& options) {
  return SimHandover::meet(*this, state_, *rendezvous_, options);
}

Result<loop::Descriptor> Host::inherit_listener(int descriptor) {
  loop::Descriptor inherited(*this, descriptor);
  if (descriptors().listener(descriptor) == nullptr) return fail(system_error(EINVAL));
  return inherited;
}

void Host::start_handover_step() {
  if (kill_step_ == handover_steps_++) kill();
}

void Host::block_main() {
  main_blocked_ = true;
  main_->yield_to_world();
}

Result<> Host::refuse_new_connections(int listener) {
  // Other processes may have the socket too.
  return killed_ ? Result<>() : MemoryPlatform::refuse_new_connections(listener);
}

Result<> Host::run(std::span<const loop::LoopPlacement> placements, loop::RunControl* control) {
  if (take_kill()) return fail(system_error(EINTR));
  assert(run_ == nullptr && "one runtime at a time");
  run_ = std::make_unique<Run>();
  Run& run = *run_;
  for (const loop::LoopPlacement& placement : placements) {
    Host::Core& core = run.cores.emplace_back(Host::Core{placement.loop});
    const auto number = state_.faults.failing_allocation(name_, placement.loop->core());
    if (!number) continue;
    placement.loop->blocks().fail_after(*number);
    core.allocation_fails = true;
  }
  run.control = control;
  main_->yield_to_world();
  const Result<> outcome = run.outcome;
  run_.reset();
  return outcome;
}

bool Host::pass_time(Instant until) {
  if (until <= now()) return false;
  std::fprintf(stderr, "weir: %s: Loop::turn() is not supported in a World (use a Runtime)\n",
               name_.c_str());
  std::abort();
}

void Host::write_line(std::string_view line) noexcept {
  if (killed_) return;
  MemoryPlatform::write_line(line);
  if (state_.trace.on()) state_.trace.note(name_ + ": " + std::string(line));
}

void Host::append_to_hosts_file(const std::string& lines) {
  const bool isolated = nondeterminism_->is_isolated();
  const std::size_t open_max = descriptors().open_max();
  nondeterminism_->set_isolated(false);
  nondeterminism_->set_files_exempt(true);
  descriptors().set_open_max(std::numeric_limits<std::size_t>::max());
  static_cast<void>(files().make_directory("/etc", 0755));
  // The open fails if the test has created something else with that name.
  const auto file = files().open("/etc/hosts", {.mode = os::FileMode::append, .permissions = 0644});
  if (file) {
    static_cast<void>(files().write_at(file->value(), to_bytes(lines), 0));
    static_cast<void>(files().sync(file->value()));
  }
  for (const char* const directory : {"/etc", "/"}) {
    static_cast<void>(files().sync_directory(directory));
  }
  descriptors().set_open_max(open_max);
  nondeterminism_->set_files_exempt(false);
  nondeterminism_->set_isolated(isolated);
}

std::vector<ConnectionInfo> Host::connections() const {
  std::vector<ConnectionInfo> open;
  descriptors().each_stream([&open](const MemoryStream& stream) {
    if (stream.connected()) open.push_back({stream.peer_address(), stream.received()});
  });
  return open;
}

std::vector<std::string> Host::leaks_on_loops() {
  std::vector<std::string> left;
  for (const Core& core : run_->cores) {
    Loop& loop = *core.loop;
    if (core.allocation_fails && !loop.blocks().will_fail()) {
      state_.faults.count(Fault::allocation);
    }
    const std::string place = name_ + "/" + std::to_string(loop.core()) + ": ";
    loop.blocks().collect();
    if (const std::size_t blocks = loop.blocks().blocks_in_use(); blocks != 0) {
      left.push_back(place + std::to_string(blocks) + " blocks of the pool are in use");
    }
    if (const std::size_t timers = loop.timers().armed(); timers != 0) {
      left.push_back(place + std::to_string(timers) + " timers are armed");
    }
    const auto& backend = static_cast<MemoryBackend&>(loop.backend());
    if (const std::string pending = backend.pending(); !pending.empty()) {
      left.push_back(place + pending + " pending");
    }
    if (const std::string open = backend.open_sockets(); !open.empty()) {
      left.push_back(place + open + " not closed");
    }
  }
  return left;
}

std::vector<std::string> Host::leaks_on_host() {
  record_failure();
  std::vector<std::string> left = std::exchange(failures_, {});
  if (const std::size_t open = open_descriptors(); open != 0) {
    left.push_back(name_ + ": " + std::to_string(open) + " descriptors are open");
  }
  if (backends() != 0) left.push_back(name_ + ": " + std::to_string(backends()) + " loops exist");
  if (const std::size_t threads = threads_running(); threads != 0) {
    left.push_back(name_ + ": " + std::to_string(threads) + " threads run");
  }
  return left;
}

}  // namespace weir::sim
