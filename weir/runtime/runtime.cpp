#include "weir/runtime/runtime.hpp"

#include <algorithm>
#include <exception>

#include "weir/loop/os/os_platform.hpp"
#include "weir/runtime/checks/detail/start_checks.hpp"
#include "weir/runtime/detail/core.hpp"
#include "weir/runtime/detail/group_report.hpp"
#include "weir/runtime/detail/hot_restart.hpp"
#include "weir/runtime/detail/task_collection.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"

namespace weir {
namespace {

/// Logs what the machine takes from the loops, and keeps its facts for the servers on them. Real
/// time and locked memory have lines of their own.
void check_machine_of(Loop& loop, const RuntimeOptions& options, std::size_t descriptors_max) {
  checks::MachineFacts facts = checks::read_machine_facts();
  facts.open_files_max = descriptors_max;
  if (loop.backend().name() != "uring") checks::add_io_uring_facts(facts);
  checks::Demands demands{.descriptors_own = 0, .backend = options.backend, .loops = true};
  if (options.cores != 0) demands.cores = options.cores;
  auto& checks = loop.group().slots().get<checks::StartChecks>(loop.platform(), std::move(facts));
  checks.log(demands);
}

}  // namespace

Runtime::Runtime(const RuntimeOptions& options)
    : own_platform_(std::make_unique<OsPlatform>()), platform_(*own_platform_), options_(options) {}

Runtime::Runtime(loop::Platform& platform, const RuntimeOptions& options)
    : platform_(platform), options_(options) {}

Runtime::~Runtime() {
  task_dump_.reset();  // its thread uses the cores and the mutex
}

int Runtime::run(const Body& body) {
  if (const auto ended = supervise()) return *ended;
  if (!lock_memory() || !begin_hot_restart()) return 1;
  if (auto made = make_cores(body); !made) {
    platform_.log("weir: cannot create an event loop: " + made.error().message());
    end_hot_restart();
    return 1;
  }
  if (options_.announce) announce();
  loop::LoopSchedule schedule{.busy_poll = options_.busy_poll, .busy_wait = options_.busy_wait};
  if (options_.real_time) {
    schedule.fifo_priority = options_.real_time->priority;
    schedule.fifo_required = options_.real_time->required;
  }
  std::vector<loop::LoopPlacement> placements;
  for (const auto& core : cores_) placements.push_back({&core->loop(), core->cpu(), schedule});
  // relaxed: no core counts before its loop runs, and starting its thread orders that.
  running_.store(cores_.size(), std::memory_order_relaxed);
  last_drains_ = false;
  signal_drains_ = false;
  for (const auto& core : cores_) core->start();
  // A request from before make_cores() took the mutex is seen here; a later request finds the
  // cores. Any memory order would be correct; acquire pairs with the release in drain() and
  // stop().
  if (drain_requested_.load(std::memory_order_acquire)) drain();
  if (stop_requested_.load(std::memory_order_acquire)) stop();

  auto ran = hot_restart_ != nullptr ? hot_restart_->start() : Result<>();
  if (ran) ran = platform_.run(placements, options_.handle_signals ? this : nullptr);
  if (!ran) {
    // A simulated platform also gives up on bodies that wait for something that will never
    // happen. Stop before logging: a log without a reader may block.
    stop();
    platform_.log("weir: cannot run: " + ran.error().message());
    const bool begun = std::ranges::any_of(cores_, [](auto& core) { return core->has_begun(); });
    if (begun) static_cast<void>(platform_.run(placements, nullptr));
  }
  end_hot_restart();
  task_dump_.reset();
  std::string failure;
  {
    const std::lock_guard lock(mutex_);
    failure = std::exchange(failure_, {});
    last_report_ = report_now();
    last_report_.running = false;
    cores_.clear();
    // relaxed: under the mutex, like every store to these three; their readers no longer run.
    drain_requested_.store(false, std::memory_order_relaxed);
    stop_requested_.store(false, std::memory_order_relaxed);
    abandon_at_.store(never, std::memory_order_relaxed);
  }
  if (!failure.empty()) platform_.log("weir: " + failure);
  return ran && failure.empty() ? 0 : 1;
}

Result<> Runtime::make_cores(const Body& body) {
  const os::Topology topology = platform_.topology();
  const std::size_t count = core_count();
  const bool pin = options_.pin && !topology.limited_by_quota;
  topology_explanation_ = topology.explanation;
  if (options_.pin && !pin) {
    topology_explanation_ += "; not pinned: the quota names no CPUs";
    if (options_.real_time) {
      platform_.log(
          "weir: loops are not pinned: a CPU quota (cpu.max, CPUQuota=, docker run --cpus) names "
          "no CPUs; give this process CPUs of its own instead: cpuset.cpus of its cgroup, "
          "AllowedCPUs= in systemd, docker run --cpuset-cpus");
    }
  }
  group_ = std::make_unique<loop::LoopGroup>();
  log_listeners();
  if (hot_restart_ != nullptr) hot_restart_->prepare(*group_);
  std::vector<std::unique_ptr<CoreRunner>> cores;
  for (std::size_t index = 0; index < count; ++index) {
    WEIR_TRY(auto loop, Loop::make(platform_, {.backend = options_.backend,
                                               .core = static_cast<unsigned>(index),
                                               .group = group_.get()}));
    if (hot_restart_ != nullptr && hot_restart_->taking_over()) loop->pause_accepting();
    const std::size_t place = index + (worker_ != nullptr ? worker_->index() * count : 0);
    const int cpu = pin && place < topology.cores.size() ? topology.cores[place].cpu : -1;
    cores.push_back(std::make_unique<CoreRunner>(*this, std::move(loop), cpu, body));
  }
  std::vector<Loop*> loops;
  for (const auto& core : cores) loops.push_back(&core->loop());
  group_->set_loops(std::move(loops));
  auto& background = group_->slots().get<BackgroundTasksOfCores>();
  for (const auto& core : cores) background.cores.push_back(&core->background());
  // Make it here, because making it starts a thread, which would delay a loop.
  static_cast<void>(shared_pool(cores.front()->loop()));
  const std::lock_guard lock(mutex_);
  cores_ = std::move(cores);
  created_at_ = platform_.now();
  return {};
}

void Runtime::log_listeners() {
  if (!options_.announce) return;
  loop::ListenerRegistry& registry = group_->listener_registry();
  registry.on_receiving = [this](const os::Address& bound) {
    platform_.log("weir: listening on " + bound.to_string());
  };
  registry.on_listening = [this](const os::Address& bound) {
    platform_.log("weir: listening on " + bound.to_string());
    // Only streams need a descriptor for each peer.
    if (checks::StartChecks* const checks = group_->slots().find<checks::StartChecks>()) {
      checks->log_lack_of_descriptors(core_count());
    }
  };
}

/// Returns false, after one log line with the cause, if requested sockets are unavailable.
bool Runtime::begin_hot_restart() {
  if (!options_.hot_restart && options_.inherited.empty() && worker_ == nullptr) return true;
  auto restart = std::make_unique<HotRestart>(*this);
  const std::string failure = restart->begin();
  if (!failure.empty()) {
    platform_.log("weir: " + failure);
    return false;
  }
  const std::lock_guard lock(mutex_);
  hot_restart_ = std::move(restart);
  return true;
}

/// Ends the hot restart without the mutex, because its thread may be about to call drain().
void Runtime::end_hot_restart() {
  std::unique_ptr<HotRestart> ending;
  {
    const std::lock_guard lock(mutex_);
    ending = std::move(hot_restart_);
  }
}

RuntimeReport Runtime::report() const {
  const std::lock_guard lock(mutex_);
  return cores_.empty() ? last_report_ : report_now();
}

/// Returns the present report; the caller holds the mutex, which keeps the cores alive.
RuntimeReport Runtime::report_now() const {
  RuntimeReport report = report_on_group(cores_.front()->loop());
  report.up = platform_.now() - created_at_;
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    report.cores[i].cpu = cores_[i]->cpu();
    report.cores[i].up = report.up;
  }
  return report;
}

/// Locks memory before anything is allocated, so that all memory is in RAM from the start.
/// Returns false if the lock is required and refused.
bool Runtime::lock_memory() {
  if (!options_.real_time || !options_.real_time->lock_memory) return true;
  const auto memory = platform_.lock_memory();
  if (!memory.locked) platform_.log("weir: memory is not locked: " + memory.explanation);
  return memory.locked || !options_.real_time->required;
}

void Runtime::announce() {
  Loop& loop = cores_.front()->loop();
  const auto limit = platform_.descriptor_limit();
  platform_.log("weir: " + std::to_string(cores_.size()) +
                (cores_.size() == 1 ? " event loop (" : " event loops (") + topology_explanation_ +
                ")");
  platform_.log("weir: backend " + std::string(loop.backend().name()) + " (" +
                loop.backend_reason() + ")");
  // A number of connections would be wrong here: each server has its own limit, see StartChecks.
  platform_.log("weir: at most " + std::to_string(limit.descriptors_max) + " descriptors (" +
                limit.explanation + ")");
  if (options_.busy_poll) platform_.log("weir: busy polling: loops never sleep");
  if (own_platform_ != nullptr) check_machine_of(loop, options_, limit.descriptors_max);
  if (!options_.real_time) return;
  // Each loop's thread makes its own request and logs a refusal then.
  platform_.log("weir: real time: requesting SCHED_FIFO with priority " +
                std::to_string(options_.real_time->priority));
}

std::size_t Runtime::core_count() const {
  const std::size_t all = options_.cores != 0 ? options_.cores : platform_.topology().cores.size();
  const std::size_t processes = options_.processes ? std::max(1U, options_.processes->count) : 1;
  return std::max<std::size_t>(1, all / processes);
}

void Runtime::drain() {
  const std::lock_guard lock(mutex_);
  // release, before any core can close an object because of this: a core that then meets a closed
  // object sees the request; see CoreRunner::failure_of().
  drain_requested_.store(true, std::memory_order_release);
  if (cores_.empty()) return;
  if (hot_restart_ != nullptr && !hot_restart_->stop()) return;
  // A worker that ends without a failure is not restarted, so no later run would serve its queue.
  if (worker_ != nullptr && failure_.empty()) hot_restart_->take_sole_ownership();
  for (const auto& core : cores_) core->request_drain();
  abandon_after(options_.drain_timeout);
}

void Runtime::stop() {
  const std::lock_guard lock(mutex_);
  // release: the same as in drain(). Only run() reads it.
  stop_requested_.store(true, std::memory_order_release);
  if (cores_.empty()) return;
  for (const auto& core : cores_) core->request_stop();
  abandon_after(Duration(0));
}

void Runtime::on_abandon_change(std::function<void()> changed) {
  const std::lock_guard lock(mutex_);
  abandon_changed_ = std::move(changed);
}

/// Sets the time after which loops are abandoned; the caller holds the mutex.
void Runtime::abandon_after(Duration length) {
  const Instant moment = after(platform_.now(), length);
  // relaxed: a time and nothing else, written under the mutex. The platform reads it again
  // whenever abandon_changed_ is called, and that call orders the two.
  if (moment >= abandon_at_.load(std::memory_order_relaxed)) return;
  abandon_at_.store(moment, std::memory_order_relaxed);
  if (abandon_changed_) abandon_changed_();
}

void Runtime::on_signal(loop::Signal signal) {
  if (signal == loop::Signal::quit) {
    try {
      if (task_dump_ == nullptr) task_dump_ = std::make_unique<TaskDump>(*this);
      return task_dump_->request();
    } catch (const std::bad_alloc&) {
      return platform_.log("weir: SIGQUIT: cannot report tasks (out of memory)");
    }
  }
  if (worker_ != nullptr) return apply_worker_command();
  const std::string name = signal == loop::Signal::interrupt ? "SIGINT" : "SIGTERM";
  // acquire: the same as in run(). A concurrent drain() of another thread may be missed. This
  // drain is then the second one, which changes nothing.
  const bool drains = drain_requested_.load(std::memory_order_acquire);
  if (!drains && hot_restart_ != nullptr && hot_restart_->postpones_drain()) {
    platform_.log("weir: " + name + ": a newer process is starting: draining when it is ready");
  } else if (std::exchange(signal_drains_, true)) {
    stop();
    platform_.log("weir: " + name + " again: stopping immediately");
  } else if (drains) {
    // A handover or drain() came before: the signal asks for what happens already.
    platform_.log("weir: " + name + ": draining already");
  } else {
    // Drain before logging: a log without a reader may block.
    drain();
    platform_.log("weir: " + name + ": draining");
  }
}

void Runtime::core_failed(std::string failure) {
  const std::string listening = group_->listener_registry().failure();
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = listening.empty() ? std::move(failure) : listening;
  }
  drain();
}

void Runtime::core_finished() {
  // The last core stops all loops: until then a core may still serve another core. acq_rel:
  // everything that the others did before they counted themselves happens before that.
  if (running_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::lock_guard lock(mutex_);
  // First the background tasks end, if there are any. Each of their cores then calls this function
  // once more. relaxed: posting the requests orders it before each count.
  const auto waits = [](const auto& core) { return core->background().running(); };
  const auto waiting = std::ranges::count_if(cores_, waits);
  running_.store(static_cast<std::size_t>(waiting), std::memory_order_relaxed);
  for (const auto& core : cores_) {
    if (waits(core)) core->request_end_of_background();
  }
  if (waiting != 0) return;
  // Then each loop drains, if it has not: what the program has left on a core ends on its thread,
  // such as the idle connections of a proxy.
  if (!std::exchange(last_drains_, true)) {
    running_.store(cores_.size(), std::memory_order_relaxed);
    for (const auto& core : cores_) core->request_last_drain();
    return;
  }
  for (const auto& core : cores_) core->loop().stop();
}

}  // namespace weir
