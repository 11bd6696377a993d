#include "weir/runtime/runtime.hpp"

#include <algorithm>
#include <exception>

#include "weir/runtime/detail/core.hpp"
#include "weir/runtime/restart.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"
#include "weir/loop/os/os_platform.hpp"

namespace weir {

Runtime::Runtime(const RuntimeOptions& options)
    : own_host_(std::make_unique<OsHost>()), host_(*own_host_), options_(options) {}

Runtime::Runtime(Host& host, const RuntimeOptions& options) : host_(host), options_(options) {}

Runtime::~Runtime() = default;

int Runtime::run(const Body& body) {
  if (const auto ended = supervise()) return *ended;
  if (!lock_memory() || !begin_restart()) return 1;
  if (auto made = make_cores(body); !made) {
    host_.log("weir: cannot make an event loop: " + made.error().message());
    end_restart();
    return 1;
  }
  if (options_.announce) announce();
  LoopSchedule schedule{.busy_poll = options_.busy_poll, .busy_wait = options_.busy_wait};
  if (options_.real_time) {
    schedule.fifo_priority = options_.real_time->priority;
    schedule.fifo_required = options_.real_time->required;
  }
  std::vector<LoopPlace> places;
  for (const auto& core : cores_) places.push_back({&core->loop(), core->cpu(), schedule});
  // relaxed: nobody counts before a loop runs, and starting its thread orders that.
  running_.store(cores_.size(), std::memory_order_relaxed);
  for (const auto& core : cores_) core->start();
  // Who asked before make_cores() had the mutex is seen here; who asks after that finds the cores.
  // So any order would do; acquire goes with the release in drain() and stop().
  if (asked_to_drain_.load(std::memory_order_acquire)) drain();
  if (asked_to_stop_.load(std::memory_order_acquire)) stop();

  auto ran = restart_ != nullptr ? restart_->start() : Result<>();
  if (ran) ran = host_.run(places, options_.handle_signals ? this : nullptr);
  if (!ran) {
    host_.log("weir: cannot run: " + ran.error().message());
    // A simulated host also gives up on bodies that wait for what will never happen.
    stop();
    const bool begun = std::ranges::any_of(cores_, [](auto& core) { return core->begun(); });
    if (begun) static_cast<void>(host_.run(places, nullptr));
  }
  end_restart();
  std::string failure;
  {
    const std::lock_guard lock(mutex_);
    failure = std::exchange(failure_, {});
    last_report_ = report_now();
    last_report_.running = false;
    cores_.clear();
    // relaxed: under the mutex, like every store to these three; their readers run no more.
    asked_to_drain_.store(false, std::memory_order_relaxed);
    asked_to_stop_.store(false, std::memory_order_relaxed);
    abandon_at_.store(never, std::memory_order_relaxed);
  }
  if (!failure.empty()) host_.log("weir: " + failure);
  return ran && failure.empty() ? 0 : 1;
}

Result<> Runtime::make_cores(const Body& body) {
  const os::Topology topology = host_.topology();
  const std::size_t count = core_count();
  const bool pin = options_.pin && !topology.cut_by_quota;
  topology_explanation_ = topology.explanation;
  if (options_.pin && !pin) {
    topology_explanation_ += "; not pinned, for the quota names no CPUs";
    if (options_.real_time) {
      host_.log(
          "weir: loops are not pinned: a CPU quota (cpu.max, CPUQuota=, docker run --cpus) names "
          "no CPUs; give this process CPUs of its own instead: cpuset.cpus of its cgroup, "
          "AllowedCPUs= in systemd, docker run --cpuset-cpus");
    }
  }
  group_ = std::make_unique<LoopGroup>();
  name_listeners();
  if (restart_ != nullptr) restart_->prepare(*group_);
  std::vector<std::unique_ptr<Core>> cores;
  for (std::size_t index = 0; index < count; ++index) {
    auto loop = Loop::make(
        host_,
        {.backend = options_.backend, .core = static_cast<unsigned>(index), .group = group_.get()});
    if (!loop) return fail(loop.error());
    if (restart_ != nullptr && restart_->taking_over()) (*loop)->hold();
    const std::size_t place = index + (seat_ != nullptr ? seat_->index() * count : 0);
    const int cpu = pin && place < topology.cores.size() ? topology.cores[place].cpu : -1;
    cores.push_back(std::make_unique<Core>(*this, std::move(*loop), cpu, body));
  }
  std::vector<Loop*> loops;
  for (const auto& core : cores) loops.push_back(&core->loop());
  group_->set_loops(std::move(loops));
  const std::lock_guard lock(mutex_);
  cores_ = std::move(cores);
  made_at_ = host_.now();
  return {};
}

void Runtime::name_listeners() {
  if (!options_.announce) return;
  group_->on_listening = [this](const os::Address& bound) {
    host_.log("weir: listening on " + bound.to_string());
  };
}

/// False, after one line that says why, where sockets cannot be had that are asked for.
bool Runtime::begin_restart() {
  if (!options_.takeover && options_.inherited.empty() && seat_ == nullptr) return true;
  auto restart = std::make_unique<Restart>(*this);
  const std::string failure = restart->begin();
  if (!failure.empty()) {
    host_.log("weir: " + failure);
    return false;
  }
  const std::lock_guard lock(mutex_);
  restart_ = std::move(restart);
  return true;
}

/// Its thread may be about to call drain(), which takes the mutex.
void Runtime::end_restart() {
  std::unique_ptr<Restart> ending;
  {
    const std::lock_guard lock(mutex_);
    ending = std::move(restart_);
  }
}

RuntimeReport Runtime::report() const {
  const std::lock_guard lock(mutex_);
  return cores_.empty() ? last_report_ : report_now();
}

/// With the mutex, which keeps the cores there.
RuntimeReport Runtime::report_now() const {
  RuntimeReport report;
  report.running = true;
  report.up = host_.now() - made_at_;
  for (const auto& core : cores_) {
    report.cores.push_back(report_on(core->loop()));
    report.cores.back().cpu = core->cpu();
    report.cores.back().up = report.up;
  }
  Loop& first = cores_.front()->loop();
  // relaxed: see LoopGroup::connections.
  report.connections = first.group().connections.load(std::memory_order_relaxed);
  report.slow_places = first.group().slow_turns().places();
  if (const SharedPool* const pool = shared_pool_if_made(first)) report.pool = pool->report();
  return report;
}

/// Before anything is made, so that all of it is there at once. False where it is required and
/// refused.
bool Runtime::lock_memory() {
  if (!options_.real_time || !options_.real_time->lock_memory) return true;
  const auto memory = host_.lock_memory();
  if (!memory.locked) host_.log("weir: memory is not locked: " + memory.explanation);
  return memory.locked || !options_.real_time->required;
}

void Runtime::announce() {
  Loop& loop = cores_.front()->loop();
  const auto limit = host_.descriptor_limit();
  const std::size_t connections = limit.descriptors_max > 64 ? limit.descriptors_max - 64 : 1;
  host_.log("weir: " + std::to_string(cores_.size()) +
            (cores_.size() == 1 ? " event loop (" : " event loops (") + topology_explanation_ +
            ")");
  host_.log("weir: backend " + std::string(loop.backend().name()) + " (" + loop.backend_reason() +
            ")");
  host_.log("weir: at most " + std::to_string(connections) +
            " connections (descriptors: " + limit.explanation + ")");
  if (options_.busy_poll) host_.log("weir: busy polling: loops never sleep");
  if (!options_.real_time) return;
  // Each loop's thread asks for itself, and a refusal is told then.
  host_.log("weir: real time: asking for SCHED_FIFO with priority " +
            std::to_string(options_.real_time->priority));
}

std::size_t Runtime::core_count() const {
  const std::size_t all = options_.cores != 0 ? options_.cores : host_.topology().cores.size();
  const std::size_t processes = options_.processes ? std::max(1U, options_.processes->count) : 1;
  return std::max<std::size_t>(1, all / processes);
}

void Runtime::drain() {
  const std::lock_guard lock(mutex_);
  // release, before any core can close something because of it: whoever then meets what is closed
  // sees that it was asked for; see Core::failure_of().
  asked_to_drain_.store(true, std::memory_order_release);
  if (cores_.empty()) return;
  if (restart_ != nullptr && !restart_->stop()) return;
  // A worker that leaves by itself has no next life, which would serve who waits for it.
  if (seat_ != nullptr && failure_.empty()) restart_->keep_for_good();
  for (const auto& core : cores_) core->ask_to_drain();
  abandon_after(options_.deadline);
}

void Runtime::stop() {
  const std::lock_guard lock(mutex_);
  // release: as in drain(). It is read by run() only.
  asked_to_stop_.store(true, std::memory_order_release);
  if (cores_.empty()) return;
  for (const auto& core : cores_) core->ask_to_stop();
  abandon_after(Duration(0));
}

void Runtime::on_abandon_change(std::function<void()> changed) {
  const std::lock_guard lock(mutex_);
  abandon_changed_ = std::move(changed);
}

/// The mutex is held.
void Runtime::abandon_after(Duration length) {
  const Instant moment = after(host_.now(), length);
  // relaxed: a time and nothing else, written under the mutex; the host looks again whenever it is
  // called, and that call orders the two.
  if (moment >= abandon_at_.load(std::memory_order_relaxed)) return;
  abandon_at_.store(moment, std::memory_order_relaxed);
  if (abandon_changed_) abandon_changed_();
}

void Runtime::signalled(Signal signal) {
  if (seat_ != nullptr) return obey();
  const std::string name = signal == Signal::interrupt ? "SIGINT" : "SIGTERM";
  // acquire: as in run(). A drain that another thread asks for at this moment may be missed: then
  // this one is the second to ask, which changes nothing.
  if (!asked_to_drain_.load(std::memory_order_acquire)) {
    if (restart_ != nullptr && restart_->postpones_drain()) {
      host_.log("weir: " + name + ": draining when the newer process is ready, which is starting");
      return;
    }
    // First of all: a log that nobody reads may take its time.
    drain();
    host_.log("weir: " + name + ": draining");
  } else {
    stop();
    host_.log("weir: " + name + " again: stopping at once");
  }
}

void Runtime::core_failed(std::string failure) {
  const std::string listening = group_->failure();
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = listening.empty() ? std::move(failure) : listening;
  }
  drain();
}

void Runtime::core_finished() {
  // The last one ends all loops: until then a core may still be asked to do something for another.
  // acq_rel: whatever the others did before they counted themselves comes before that.
  if (running_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::lock_guard lock(mutex_);
  for (const auto& core : cores_) core->loop().stop();
}

}  // namespace weir
