#include "weir/loop/os/detail/os_profiler.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "weir/loop/loop.hpp"

namespace weir::loop {

LoopThreadTable::Running::Running(Loop& loop) noexcept : loop_(loop) {
  try {
    auto& table = loop.group().slots().get<LoopThreadTable>();
    const std::lock_guard lock(table.mutex_);
    table.entries_.push_back({&loop, os::SampledThread::of_this_thread()});
    table_ = &table;
  } catch (const std::bad_alloc&) {
    // A profile then says that the loop has no thread.
  }
}

LoopThreadTable::Running::~Running() {
  if (table_ == nullptr) return;
  const std::lock_guard lock(table_->mutex_);
  std::erase_if(table_->entries_, [this](const Entry& each) { return each.loop == &loop_; });
}

std::optional<os::SampledThread> LoopThreadTable::thread_of(Loop& loop) {
  auto* const table = loop.group().slots().find<LoopThreadTable>();
  if (table == nullptr) return std::nullopt;
  const std::lock_guard lock(table->mutex_);
  const auto found = std::ranges::find(table->entries_, &loop, &Entry::loop);
  if (found == table->entries_.end()) return std::nullopt;
  return found->thread;
}

OtherThreads& OtherThreads::of_process() {
  // Threads may end while the process exits.
  static OtherThreads& threads = *new OtherThreads;
  return threads;
}

OtherThreads::Running::Running(const std::string& name) noexcept {
  try {
    OtherThreads& all = of_process();
    Entry entry{.name = name, .thread = os::SampledThread::of_this_thread()};
    const std::lock_guard lock(all.mutex_);
    entry.number = all.last_number_ + 1;
    all.entries_.push_back(std::move(entry));
    number_ = ++all.last_number_;
  } catch (const std::bad_alloc&) {
    // A profile does not sample this thread.
  }
}

OtherThreads::Running::~Running() {
  if (number_ == 0) return;
  OtherThreads& all = of_process();
  const std::lock_guard lock(all.mutex_);
  std::erase_if(all.entries_, [this](const Entry& each) { return each.number == number_; });
}

void OtherThreads::each_above(std::uint64_t above, const std::function<bool(const Entry&)>& use) {
  OtherThreads& all = of_process();
  const std::lock_guard lock(all.mutex_);
  for (auto each = std::ranges::upper_bound(all.entries_, above, {}, &Entry::number);
       each != all.entries_.end() && use(*each); ++each) {
  }
}

namespace {

/// A profile of threads by a CpuSampler.
class OsCpuProfile final : public CpuProfile {
 public:
  explicit OsCpuProfile(LabelReader* labels) noexcept : labels_(labels) {}

  Result<> start(std::span<const os::SampledThread> threads, unsigned hertz) {
    loops_ = threads.size();
    auto sampler =
        os::CpuSampler::start(threads, {.hertz = hertz, .hook = &read_facts, .hook_context = this});
    if (!sampler) return fail(sampler.error());
    sampler_ = std::move(*sampler);
    return {};
  }

  bool drain(std::size_t most, const std::function<void(const CpuSample&)>& use) override {
    add_new_threads();
    return sampler_->drain(most, [&](const os::CpuSampler::Sample& sample) {
      const bool is_loop = sample.thread < loops_;
      use({.thread = sample.thread,
           .core = is_loop ? sample.thread : CpuSample::no_core,
           .thread_name = is_loop ? std::string_view() : names_[sample.thread - loops_],
           .weight = sample.weight,
           .activity = sample.facts.activity,
           .label = sample.facts.label,
           .frames = sample.frames});
    });
  }
  void stop() noexcept override { sampler_->stop(); }
  std::uint64_t dropped() const noexcept override { return sampler_->dropped(); }

 private:
  /// Samples some of the threads that have started, so that the call takes little time.
  void add_new_threads() {
    constexpr std::size_t at_once = 8;
    std::size_t added = 0;
    OtherThreads::each_above(last_number_, [&](const OtherThreads::Entry& each) {
      if (names_.size() == CpuProfileOptions::other_threads_max || added == at_once) return false;
      last_number_ = each.number;
      names_.reserve(names_.size() + 1);
      std::string name = each.name;
      // A thread that blocks SIGPROF, or for which the kernel has no timer, is left out.
      if (!sampler_->add(each.thread)) return true;
      names_.push_back(std::move(name));
      ++added;
      return true;
    });
  }
  /// Runs in the signal handler. It reads two variables of the interrupted thread.
  static os::CpuSampler::Facts read_facts(void* self, std::size_t thread) noexcept {
    os::CpuSampler::Facts facts;
    facts.activity = reinterpret_cast<std::uintptr_t>(CurrentActivity::function());
    LabelReader* const labels = static_cast<OsCpuProfile*>(self)->labels_;
    const TraceContext* const trace = CurrentActivity::trace();
    if (labels != nullptr && trace != nullptr) facts.label = labels->read(thread, trace);
    return facts;
  }

  LabelReader* labels_;
  std::size_t loops_ = 0;
  std::uint64_t last_number_ = 0;   // of the other threads that were added
  std::vector<std::string> names_;  // of the other threads, which come behind the loops
  std::unique_ptr<os::CpuSampler> sampler_;
};

std::string reason_of(std::error_code error) {
  if (error == Errc::conflict) return "another profile runs in this process (wait for its end)";
  if (error == Errc::unsupported) {
    return "a thread of a loop blocks SIGPROF (unblock it before the loops start)";
  }
  return "timer_create: " + error.message();
}

}  // namespace

std::expected<std::unique_ptr<CpuProfile>, ProfileError> start_os_cpu_profile(
    std::span<Loop* const> loops, const CpuProfileOptions& options) {
  std::vector<os::SampledThread> threads;
  for (Loop* const each : loops) {
    const auto thread = LoopThreadTable::thread_of(*each);
    if (!thread) {
      return std::unexpected(
          ProfileError{system_error(EAGAIN), "a loop has not begun yet, or has ended"});
    }
    threads.push_back(*thread);
  }
  auto profile = std::make_unique<OsCpuProfile>(options.labels);
  if (const auto started = profile->start(threads, options.hertz); !started) {
    return std::unexpected(ProfileError{started.error(), reason_of(started.error())});
  }
  return profile;
}

}  // namespace weir::loop
