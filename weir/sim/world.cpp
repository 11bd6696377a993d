// The World: the order of turns, and the moves of the clock.
#include "weir/sim/world.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <tuple>
#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/testing/memory/detail/memory_backend.hpp"

namespace weir::sim {
namespace {

// Maximum time for the end of a cancelled run.
constexpr Duration cancel_timeout = std::chrono::hours(1);

bool has_work(const Host::Core& core) {
  const auto& backend = static_cast<const MemoryBackend&>(core.loop->backend());
  return core.loop->has_work() || backend.has_work();
}

bool is_host_name(std::string_view text) {
  return std::ranges::all_of(text, [](char each) {
    return std::isalnum(static_cast<unsigned char>(each)) != 0 || each == '-' || each == '.';
  });
}

std::string seconds_of(Duration length) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(length).count()) + " s";
}

}  // namespace

std::uint64_t fresh_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

std::optional<std::string> thrown_by(const std::function<void()>& function) {
  try {
    function();
    return std::nullopt;
  } catch (const std::exception& thrown) {
    return thrown.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

std::string WorldReport::text() const {
  std::string text;
  for (const std::string& failure : failures) text += failure + "\n";
  return text + "seed " + std::to_string(seed) + ", replay: " + replay + "\n";
}

World::World(const WorldOptions& options)
    : seed_(options.seed),
      replay_(options.replay),
      steps_per_instant_max_(options.steps_per_instant_max),
      state_(options),
      links_(state_) {}

/// Kills what runs after run_until().
World::~World() {
  if (moment_ != Instant() && !done()) {
    for (const auto& host : hosts_) host->kill();
    std::ignore = run_until_done(cancel_timeout);
  }
  while (!hosts_.empty()) hosts_.pop_back();  // a machine outlives the other processes on it
}

Host* World::find(const std::string& name) const {
  const auto found =
      std::ranges::find_if(hosts_, [&](const auto& each) { return each->name() == name; });
  return found == hosts_.end() ? nullptr : found->get();
}

Host& World::process(Host& machine, const std::string& name, const HostOptions& options) {
  if (Host* const known = find(name)) return *known;
  hosts_.push_back(std::make_unique<Host>(state_, name, machine, options));
  hosts_.back()->append_to_hosts_file(hosts_file_);
  return *hosts_.back();
}

Host& World::host(const std::string& name, const HostOptions& options) {
  if (Host* const known = find(name)) return *known;
  const auto number = static_cast<unsigned>(hosts_.size());
  hosts_.push_back(std::make_unique<Host>(state_, name, number, options));
  Host& made = *hosts_.back();
  made.network().join(links_, made.address(0));
  made.datagram_network().join(links_, made.address(0));
  links_.add(made.address(0), made.network(), made.datagram_network());
  add_to_hosts_files(made);
  return made;
}

void World::add_to_hosts_files(Host& made) {
  const std::string address = made.address(0).to_string();
  std::string line;
  if (is_host_name(made.name())) {
    line = address.substr(0, address.find(':')) + " " + made.name() + "\n";
  }
  hosts_file_ += line;
  for (const auto& each : hosts_) {
    each->append_to_hosts_file(each.get() == &made ? hosts_file_ : line);
  }
}

void World::partition(Host& one, Host& other) {
  partition_one_way(one, other);
  partition_one_way(other, one);
}

void World::partition_one_way(Host& from, Host& to) {
  if (state_.trace.on()) state_.trace.note("cut from " + from.name() + " to " + to.name());
  links_.link(from.address(0), to.address(0)).set_open(false);
}

void World::heal(Host& one, Host& other) {
  if (state_.trace.on()) state_.trace.note("heal " + one.name() + " and " + other.name());
  links_.link(one.address(0), other.address(0)).set_open(true);
  links_.link(other.address(0), one.address(0)).set_open(true);
}

void World::pause(Host& host, Duration length) {
  const Instant end = after(now(), length);
  if (state_.trace.on()) {
    state_.trace.note("pause " + host.name() + " for " + std::to_string(length.count()) + " ns");
  }
  host.set_paused_until(end);
  state_.clock.at(end, [] {});
}

void World::slow_down(Host& one, Host& other, Duration extra) {
  links_.link(one.address(0), other.address(0)).set_extra_delay(extra);
  links_.link(other.address(0), one.address(0)).set_extra_delay(extra);
}

void World::jump(Duration length) {
  state_.trace.note("the clock jumps");
  state_.clock.move_to(after(now(), length));
}

void World::schedule(Duration later, std::function<void()> event) {
  state_.clock.at(after(now(), later), [this, event = std::move(event)] {
    if (const auto thrown = thrown_by(event)) add_failure("an event threw " + *thrown);
  });
}

void World::check(std::string name, std::function<std::string()> find_violation) {
  at_end_.push_back({std::move(name), std::move(find_violation)});
}

void World::always(std::string name, std::function<std::string()> find_violation) {
  always_.push_back({std::move(name), std::move(find_violation)});
}

void World::run_checks(std::vector<Check>& checks) {
  for (Check& check : checks) {
    if (check.failed) continue;
    std::string violation;
    const auto thrown = thrown_by([&] { violation = check.find_violation(); });
    if (thrown) violation = "the check threw " + *thrown;
    check.failed = !violation.empty();
    if (check.failed) add_failure(check.name + ": " + violation);
  }
}

bool World::done() const {
  return std::ranges::all_of(hosts_, [](const auto& host) { return host->done(); });
}

/// Resumes mains, or gives a core a turn. Returns false if nothing is ready.
bool World::step() {
  bool did = state_.clock.move_to(now());
  for (const auto& host : hosts_) did = resume_main(*host) || did;
  if (!did && !run_one_turn()) return false;
  if (std::exchange(moment_, now()) != now()) steps_ = 0;
  ++steps_;
  return true;
}

bool World::run_until(const std::function<bool()>& done, Duration limit) {
  const weir::detail::RandomSource::Use use(state_.library_random);
  const Instant end = after(now(), limit);
  steps_ = 0;
  services_stay_ = true;
  bool possible = true;
  while (possible && !done()) {
    if (step()) {
      possible = !livelocked();
      continue;
    }
    const Instant next = next_event_time();
    possible = next <= end && next != never;
    if (possible || next != never) state_.clock.move_to(std::min(next, end));
  }
  services_stay_ = false;
  return possible;
}

WorldReport World::run_until_done(Duration limit) {
  const weir::detail::RandomSource::Use use(state_.library_random);
  aborted_ = false;
  Instant end = after(now(), limit);
  steps_ = 0;
  if (std::exchange(stop_is_due_, false)) stop_services();
  while (!done()) {
    if (step()) {
      if (!livelocked()) continue;
      steps_ = 0;
      abort_run("livelock: " + std::to_string(steps_per_instant_max_) +
                " steps without progress of the virtual time");
      end = after(now(), cancel_timeout);
      continue;
    }
    const Instant next = next_event_time();
    if (next <= end && next != never) {
      state_.clock.move_to(next);
      continue;
    }
    abort_run(next == never ? "deadlock: nothing is ready, no timer is armed, no data is in flight"
                            : "not done after " + seconds_of(limit));
    end = after(now(), cancel_timeout);
  }
  for (const auto& host : hosts_) {
    for (std::string& left : host->leaks_on_host()) add_failure(std::move(left));
  }
  for (const std::string& name : state_.faults.planned_hosts()) {
    if (find(name) == nullptr)
      add_failure("a fault is planned for \"" + name + "\", which is not a host");
  }
  for (Check& each : at_end_) each.failed = false;  // it may have failed in an earlier run
  run_checks(at_end_);
  if (state_.trace.on()) {
    state_.trace.note(std::to_string(turns_) + " turns, order hash " + std::to_string(turns_hash_));
  }
  return {seed_, std::exchange(failures_, {}), replay_ + std::to_string(seed_)};
}

/// Resumes main or delivers a signal, if there is a reason. Returns true if there was one.
bool World::resume_main(Host& host) {
  if (host.done() || host.paused_until() > now()) return false;
  if (host.has_returned()) {
    host.start_next();
    return true;
  }
  Host::Run* const run = host.running();
  if (run == nullptr) {
    if (host.main_is_blocked()) return false;
    host.resume();
    stop_services();
    return true;
  }
  if (host.take_kill()) {
    run->outcome = fail(system_error(EINTR));
  } else if (const auto signal = host.next_signal()) {
    if (run->control != nullptr) {
      run->control->on_signal(*signal);
      return true;
    }
    run->outcome = fail(system_error(EINTR));
  } else if (std::ranges::any_of(run->cores, [](auto& core) { return !core.loop->stopping(); })) {
    return false;
  } else {
    for (std::string& left : host.leaks_on_loops()) add_failure(std::move(left));
  }
  host.resume();
  stop_services();
  return true;
}

/// Raises SIGTERM in the services when all other mains have returned.
void World::stop_services() {
  if (services_stay_) {
    stop_is_due_ = true;
    return;
  }
  bool is_awaited = false;
  for (const auto& host : hosts_) {
    is_awaited = is_awaited || host->is_awaited();
    if (!host->service() && !host->done()) return;
  }
  if (!is_awaited) return;
  for (const auto& host : hosts_) {
    if (!host->service() || host->done() || std::exchange(host->terminate_sent, true)) continue;
    host->raise(loop::Signal::terminate);
  }
}

/// The rest of a killed process is never paused.
bool World::is_paused(const Host& host, const Host::Core& core) const {
  return std::max(core.paused_until, host.paused_until()) > now() && !host.killed();
}

bool World::run_one_turn() {
  std::vector<std::pair<Host*, Host::Core*>> ready;
  for (const auto& host : hosts_) {
    if (host->running() == nullptr) continue;
    for (Host::Core& core : host->running()->cores) {
      if (core.loop->stopping() || is_paused(*host, core) || !has_work(core)) continue;
      ready.emplace_back(host.get(), &core);
    }
  }
  if (ready.empty()) return false;
  const auto [host, core] = ready[state_.random.below(ready.size())];
  if (!host->killed() && state_.random.bernoulli(state_.jitter.late_turn)) {
    core->paused_until = after(now(), state_.random.between({}, state_.jitter.late_turn_max));
    state_.clock.at(core->paused_until, [] {});
  } else {
    turn(*host, *core);
  }
  return true;
}

void World::turn(Host& host, Host::Core& core) {
  if (state_.trace.on()) {
    const std::string place = host.name() + "/" + std::to_string(core.loop->core());
    hash_turn(place);
    state_.trace.set_location(place);
  }
  const detail::Counter& ran = core.loop->counters().ran;
  const std::uint64_t before = ran.value();
  core.loop->turn(now());
  steps_ += ran.value() - before;
  state_.trace.set_location("-");
  run_checks(always_);
}

/// Most turns have no line in the trace; the last line has a hash of their order.
void World::hash_turn(const std::string& place) {
  const auto add = [this](std::uint64_t part) { turns_hash_ = Random(turns_hash_ ^ part).next(); };
  ++turns_;
  add(static_cast<std::uint64_t>(now().time_since_epoch().count()));
  for (const char each : place) add(static_cast<unsigned char>(each));
}

Instant World::next_event_time() const {
  Instant next = state_.clock.next();
  for (const auto& host : hosts_) {
    if (host->running() == nullptr) continue;
    for (const Host::Core& core : host->running()->cores) {
      // The end of a pause is an event of the clock.
      if (core.loop->stopping() || is_paused(*host, core)) continue;
      next = std::min(next, core.loop->timers().next());
    }
  }
  return next;
}

/// Makes every run() fail; a Runtime then cancels everything.
void World::abort_run(std::string why) {
  for (const auto& host : hosts_) {
    if (host->running() == nullptr) continue;
    why += "; " + host->name();
    for (const Host::Core& core : host->running()->cores) {
      const auto& backend = static_cast<const MemoryBackend&>(core.loop->backend());
      const std::string pending = core.loop->stopping() ? "has stopped" : backend.pending();
      const std::size_t frames = core.loop->blocks().blocks_in_use(BlockUse::frame);
      why += " [" + (pending.empty() ? "no operation" : pending) + ", " + std::to_string(frames) +
             " coroutines]";
    }
  }
  add_failure(why);
  if (std::exchange(aborted_, true)) {
    std::fprintf(stderr, "weir: World: the run does not end after it was aborted\n%s",
                 WorldReport{seed_, failures_, replay_ + std::to_string(seed_)}.text().c_str());
    std::abort();
  }
  for (const auto& host : hosts_) {
    if (host->running() == nullptr) continue;
    // A SIGTERM would end the run in which the Runtime waits for what it has cancelled. A killed
    // process gets no signal; the next main of its host may still need one.
    if (!host->killed()) host->terminate_sent = true;
    host->running()->outcome = fail(system_error(ETIMEDOUT));
    host->resume();
  }
}

}  // namespace weir::sim
