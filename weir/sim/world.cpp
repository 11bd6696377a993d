// The World: who has the next turn, and when the clock moves.
#include "weir/sim/world.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/testing/memory/detail/memory_backend.hpp"

namespace weir {
namespace {

// How long what was cancelled, because time was up, may take to end.
constexpr Duration end_time_max = std::chrono::hours(1);

bool has_work(const WorldHost::Core& core) {
  const auto& backend = static_cast<const MemoryBackend&>(core.loop->backend());
  return core.loop->has_work() || backend.has_work();
}

bool is_host_name(std::string_view text) {
  return std::ranges::all_of(text, [](char each) {
    return std::isalnum(static_cast<unsigned char>(each)) != 0 || each == '-' || each == '.';
  });
}

/// Not as one of the host's own processes: it is there whatever happens.
void append_to_hosts_file(FileSystem& files, const std::string& lines) {
  static_cast<void>(files.make_directory("/etc", 0755));
  const auto file = files.open("/etc/hosts", {.mode = os::FileMode::append, .permissions = 0644});
  if (!file) return;  // the test has put something else there
  static_cast<void>(files.write_at(file->value(), to_bytes(lines), 0));
  static_cast<void>(files.sync(file->value()));
  for (const char* const directory : {"/etc", "/"}) {
    static_cast<void>(files.sync_directory(directory));
  }
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
    return "something that is no std::exception";
  }
}

std::string WorldReport::text() const {
  std::string text;
  for (const std::string& failure : failures) text += failure + "\n";
  return text + "seed " + std::to_string(seed) + ", again by: " + replay + "\n";
}

World::World(const WorldOptions& options)
    : seed_(options.seed),
      replay_(options.replay),
      steps_at_once_max_(options.steps_at_once_max),
      state_(options),
      links_(state_) {}

World::~World() {
  while (!hosts_.empty()) hosts_.pop_back();  // a machine outlives its further processes
}

WorldHost* World::find(const std::string& name) const {
  const auto found =
      std::ranges::find_if(hosts_, [&](const auto& each) { return each->name() == name; });
  return found == hosts_.end() ? nullptr : found->get();
}

WorldHost& World::process(WorldHost& machine, const std::string& name,
                          const WorldHostOptions& options) {
  if (WorldHost* const known = find(name)) return *known;
  hosts_.push_back(std::make_unique<WorldHost>(state_, name, machine, options));
  append_to_hosts_file(hosts_.back()->files(), hosts_file_);
  return *hosts_.back();
}

WorldHost& World::host(const std::string& name, const WorldHostOptions& options) {
  if (WorldHost* const known = find(name)) return *known;
  const auto number = static_cast<unsigned>(hosts_.size());
  hosts_.push_back(std::make_unique<WorldHost>(state_, name, number, options));
  WorldHost& made = *hosts_.back();
  made.network().join(links_, made.address(0));
  made.datagram_network().join(links_, made.address(0));
  links_.add(made.address(0), made.network(), made.datagram_network());
  make_known(made);
  return made;
}

void World::make_known(WorldHost& made) {
  const std::string address = made.address(0).to_string();
  std::string line;
  if (is_host_name(made.name())) {
    line = address.substr(0, address.find(':')) + " " + made.name() + "\n";
  }
  hosts_file_ += line;
  for (const auto& each : hosts_) {
    append_to_hosts_file(each->files(), each.get() == &made ? hosts_file_ : line);
  }
}

void World::set_open(WorldHost& one, WorldHost& other, bool open) {
  links_.path(one.address(0), other.address(0)).set_open(open);
  links_.path(other.address(0), one.address(0)).set_open(open);
}

void World::slow_down(WorldHost& one, WorldHost& other, Duration extra) {
  links_.path(one.address(0), other.address(0)).set_extra_delay(extra);
  links_.path(other.address(0), one.address(0)).set_extra_delay(extra);
}

void World::jump(Duration length) {
  state_.trace.note("the clock jumps");
  state_.clock.move_to(after(now(), length));
}

void World::at(Duration later, std::function<void()> event) {
  state_.clock.at(after(now(), later), [this, event = std::move(event)] {
    if (const auto thrown = thrown_by(event)) failed("an event has thrown " + *thrown);
  });
}

void World::check(std::string name, std::function<std::string()> find_fault) {
  at_end_.push_back({std::move(name), std::move(find_fault)});
}

void World::always(std::string name, std::function<std::string()> find_fault) {
  always_.push_back({std::move(name), std::move(find_fault)});
}

void World::ask(std::vector<Check>& checks) {
  for (Check& check : checks) {
    if (check.failed) continue;
    std::string fault;
    const auto thrown = thrown_by([&] { fault = check.find_fault(); });
    if (thrown) fault = "it has thrown " + *thrown;
    check.failed = !fault.empty();
    if (check.failed) failed(check.name + ": " + fault);
  }
}

bool World::all_done() const {
  return std::ranges::all_of(hosts_, [](const auto& host) { return host->done(); });
}

WorldReport World::run_until_done(Duration limit) {
  given_up_ = false;
  Instant end = after(now(), limit);
  Instant moment = now();
  steps_ = 0;
  while (!all_done()) {
    bool did = state_.clock.move_to(now());
    for (const auto& host : hosts_) did = go_on(*host) || did;
    if (did || turn_one()) {
      if (std::exchange(moment, now()) != now()) steps_ = 0;
      if (++steps_ <= steps_at_once_max_) continue;
      steps_ = 0;
      give_up("no time passes: " + std::to_string(steps_at_once_max_) + " steps at one moment");
      end = after(now(), end_time_max);
      continue;
    }
    const Instant next = next_moment();
    if (next <= end && next != never) {
      state_.clock.move_to(next);
      continue;
    }
    give_up(next == never ? "deadlock: nothing is ready, no timer is armed, nothing is on its way"
                          : "not done after " + seconds_of(limit));
    end = after(now(), end_time_max);
  }
  for (const auto& host : hosts_) {
    for (std::string& left : host->left_on_host()) failed(std::move(left));
  }
  for (const std::string& name : state_.faults.planned_hosts()) {
    if (find(name) == nullptr) failed("a fault is to strike \"" + name + "\", which is no host");
  }
  ask(at_end_);
  if (state_.trace.on()) {
    state_.trace.note(std::to_string(turns_) + " turns, whose order is " +
                      std::to_string(turns_hash_));
  }
  return {seed_, std::exchange(failures_, {}), replay_ + std::to_string(seed_)};
}

/// What main and the signals of a host ask for. Returns whether there was anything.
bool World::go_on(WorldHost& host) {
  if (host.done()) return false;
  if (host.has_returned()) {
    host.begin_next();
    return true;
  }
  WorldHost::Run* const run = host.running();
  if (run == nullptr) {
    if (host.main_waits()) return false;
    host.go_on();
    tell_services();
    return true;
  }
  if (host.take_death()) {
    run->outcome = fail(system_error(EINTR));
  } else if (const auto signal = host.next_signal()) {
    if (run->control != nullptr) {
      run->control->signalled(*signal);
      return true;
    }
    run->outcome = fail(system_error(EINTR));
  } else if (std::ranges::any_of(run->cores, [](auto& core) { return !core.loop->stopping(); })) {
    return false;
  } else {
    for (std::string& left : host.left_on_loops()) failed(std::move(left));
  }
  host.go_on();
  tell_services();
  return true;
}

/// Services end when nobody is left who needs them.
void World::tell_services() {
  bool waited_for = false;
  for (const auto& host : hosts_) {
    waited_for = waited_for || host->waited_for();
    if (!host->service() && !host->done()) return;
  }
  if (!waited_for) return;
  for (const auto& host : hosts_) {
    if (!host->service() || host->done() || std::exchange(host->told_to_end, true)) continue;
    host->raise(Signal::terminate);
  }
}

/// What is left of a killed one goes without delay.
bool World::rests(const WorldHost& host, const WorldHost::Core& core) const {
  return core.rests_until > now() && !host.killed();
}

bool World::turn_one() {
  std::vector<std::pair<WorldHost*, WorldHost::Core*>> ready;
  for (const auto& host : hosts_) {
    if (host->running() == nullptr) continue;
    for (WorldHost::Core& core : host->running()->cores) {
      if (core.loop->stopping() || rests(*host, core) || !has_work(core)) continue;
      ready.emplace_back(host.get(), &core);
    }
  }
  if (ready.empty()) return false;
  const auto [host, core] = ready[state_.draw.below(ready.size())];
  if (!host->killed() && state_.draw.happens(state_.variation.late_turn)) {
    core->rests_until = after(now(), state_.draw.between({}, state_.variation.late_turn_max));
    state_.clock.at(core->rests_until, [] {});
  } else {
    turn(*host, *core);
  }
  return true;
}

void World::turn(WorldHost& host, WorldHost::Core& core) {
  if (state_.trace.on()) {
    const std::string place = host.name() + "/" + std::to_string(core.loop->core());
    note_turn(place);
    state_.trace.set_place(place);
  }
  const Counter& ran = core.loop->counters().ran;
  const std::uint64_t before = ran.value();
  core.loop->turn(now());
  steps_ += ran.value() - before;
  state_.trace.set_place("-");
  ask(always_);
}

/// Most turns have no line of their own; which came when shows in the trace's last line.
void World::note_turn(const std::string& place) {
  const auto add = [this](std::uint64_t part) {
    turns_hash_ = WorldDraw(turns_hash_ ^ part).next();
  };
  ++turns_;
  add(static_cast<std::uint64_t>(now().time_since_epoch().count()));
  for (const char each : place) add(static_cast<unsigned char>(each));
}

Instant World::next_moment() const {
  Instant next = state_.clock.next();
  for (const auto& host : hosts_) {
    if (host->running() == nullptr) continue;
    for (const WorldHost::Core& core : host->running()->cores) {
      // One that rests has its end among the clock's events.
      if (core.loop->stopping() || rests(*host, core)) continue;
      next = std::min(next, core.loop->timers().next());
    }
  }
  return next;
}

/// All that runs is told that its host cannot go on: a Runtime then cancels everything.
void World::give_up(std::string why) {
  for (const auto& host : hosts_) {
    if (host->running() == nullptr) continue;
    why += "; " + host->name();
    for (const WorldHost::Core& core : host->running()->cores) {
      const auto& backend = static_cast<const MemoryBackend&>(core.loop->backend());
      const std::string pending = core.loop->stopping() ? "has stopped" : backend.pending();
      const std::size_t frames = core.loop->blocks().blocks_in_use(BlockUse::frame);
      why += " [" + (pending.empty() ? "no operation" : pending) + ", " + std::to_string(frames) +
             " coroutines]";
    }
  }
  failed(why);
  if (std::exchange(given_up_, true)) {
    std::fprintf(stderr, "weir: a World cannot be ended\n%s",
                 WorldReport{seed_, failures_, replay_ + std::to_string(seed_)}.text().c_str());
    std::abort();
  }
  for (const auto& host : hosts_) {
    if (host->running() == nullptr) continue;
    host->running()->outcome = fail(system_error(ETIMEDOUT));
    host->go_on();
  }
}

}  // namespace weir
