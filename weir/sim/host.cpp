#include "weir/sim/host.hpp"

#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/testing/memory/detail/memory_backend.hpp"
#include "weir/testing/world_handover.hpp"

namespace weir {
namespace {

MemoryHostOptions options_for(const WorldHostOptions& options, WorldState& state) {
  return {.seed = state.draw.next(),
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

WorldHost::WorldHost(WorldState& state, std::string name, unsigned number,
                     const WorldHostOptions& options)
    : WorldHost(state, name, address_of(number), nullptr, options,
                std::make_unique<WorldChance>(state, name)) {}

WorldHost::WorldHost(WorldState& state, std::string name, WorldHost& machine,
                     const WorldHostOptions& options)
    : WorldHost(state, name, machine.address_, &machine, options,
                std::make_unique<WorldChance>(state, name)) {}

WorldHost::WorldHost(WorldState& state, std::string name, const Endpoint& address,
                     WorldHost* machine, const WorldHostOptions& options,
                     std::unique_ptr<WorldChance> chance)
    : MemoryHost(options_for(options, state), {state.clock, *chance, machine}),
      state_(state),
      name_(std::move(name)),
      address_(address),
      chance_(std::move(chance)),
      meetings_(machine == nullptr ? std::make_shared<WorldMeetings>() : machine->meetings_) {}

WorldHost::~WorldHost() = default;

void WorldHost::begin(WorldMainFunction main, bool service) {
  if (killed_ && !has_returned()) {
    next_ = std::move(main);
    next_is_service_ = service;
    return;
  }
  if (!has_returned()) {
    std::fprintf(stderr, "weir: %s: started while its main runs: it has to return, or be killed\n",
                 name_.c_str());
    std::abort();
  }
  note_failure();
  service_ = service;
  told_to_end = false;
  killed_ = knows_death_ = false;
  handover_steps_ = 0;
  chance_->set_dead(false);
  status_.reset();
  failure_noted_ = false;
  main_ = std::make_unique<WorldMain>(
      [this, main = std::move(main)] { thrown_ = thrown_by([&] { status_ = main(*this); }); });
}

void WorldHost::begin_next() {
  begin(std::exchange(next_, nullptr), next_is_service_);
}

/// Of a main that has returned, unless it was killed: that is nobody's fault.
void WorldHost::note_failure() {
  if (!killed_ && thrown_) failures_.push_back(name_ + ": main has thrown " + *thrown_);
  if (!killed_ && status_.value_or(0) != 0 && !failure_noted_) {
    failures_.push_back(name_ + ": main has returned " + std::to_string(*status_));
  }
  failure_noted_ = true;
  thrown_.reset();
}

void WorldHost::kill() {
  if (killed_ || done()) return;
  killed_ = true;
  killed_at_step_.reset();
  if (state_.trace.on()) state_.trace.note(name_ + " is killed");
  chance_->set_dead(true);
  lost_ = connections();
  if (place_ != nullptr) place_->die();
  descriptors().die();
}

bool WorldHost::listens() const {
  return descriptors().listens();
}

HandoverStart WorldHost::begin_handover(const HandoverOptions& options) {
  return WorldHandover::meet(*this, state_, *meetings_, options);
}

Result<Descriptor> WorldHost::inherit_listener(int descriptor) {
  Descriptor inherited(*this, descriptor);
  if (descriptors().listener(descriptor) == nullptr) return fail(system_error(EINVAL));
  return inherited;
}

void WorldHost::begin_handover_step() {
  if (killed_at_step_ == handover_steps_++) kill();
}

void WorldHost::wait_in_main() {
  main_waits_ = true;
  main_->hand_back();
}

Result<> WorldHost::refuse_new_connections(int listener) {
  // Others may have the socket too.
  return killed_ ? Result<>() : MemoryHost::refuse_new_connections(listener);
}

Result<> WorldHost::run(std::span<const LoopPlace> places, RunControl* control) {
  if (take_death()) return fail(system_error(EINTR));
  assert(run_ == nullptr && "one runtime at a time");
  run_ = std::make_unique<Run>();
  Run& run = *run_;
  for (const LoopPlace& place : places) {
    WorldHost::Core& core = run.cores.emplace_back(WorldHost::Core{place.loop});
    const auto number = state_.faults.failing_allocation(name_, place.loop->core());
    if (!number) continue;
    place.loop->blocks().fail_after(*number);
    core.fails_to_allocate = true;
  }
  run.control = control;
  main_->hand_back();
  const Result<> outcome = run.outcome;
  run_.reset();
  return outcome;
}

bool WorldHost::pass_time(Instant until) {
  if (until <= now()) return false;
  std::fprintf(stderr, "weir: %s: a loop of a World is turned by hand: use a Runtime\n",
               name_.c_str());
  std::abort();
}

void WorldHost::log(std::string_view line) noexcept {
  if (killed_) return;
  MemoryHost::log(line);
  if (state_.trace.on()) state_.trace.note(name_ + ": " + std::string(line));
}

std::vector<WorldConnection> WorldHost::connections() const {
  std::vector<WorldConnection> open;
  descriptors().each_stream([&open](const MemoryStream& stream) {
    if (stream.connected()) open.push_back({stream.peer_address(), stream.received()});
  });
  return open;
}

std::vector<std::string> WorldHost::left_on_loops() {
  std::vector<std::string> left;
  for (const Core& core : run_->cores) {
    Loop& loop = *core.loop;
    if (core.fails_to_allocate && !loop.blocks().will_fail()) {
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

std::vector<std::string> WorldHost::left_on_host() {
  note_failure();
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

}  // namespace weir
