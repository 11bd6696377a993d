// Tests of sampling the stacks of threads by timers.
#include "weir/os/detail/process/cpu_sampler.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weir/os/detail/process/symbolizer.hpp"

namespace weir::os {
namespace {

using namespace std::chrono_literals;

volatile unsigned sink = 0;

constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

// Functions that only burn time, whose names the profile must have.
[[gnu::noinline]] void burn_in_the_sampler_test(std::chrono::nanoseconds length) {
  const auto end = std::chrono::steady_clock::now() + length;
  while (std::chrono::steady_clock::now() < end) {
    for (unsigned index = 0; index < 20'000; ++index) sink = sink + index * index;
  }
}

/// A thread that calls a function until the end of the test.
template <class Work>
class Busy {
 public:
  explicit Busy(Work work)
      : thread_([this, work] {
          thread_of_ = SampledThread::of_this_thread();
          ready_.store(true);
          while (!stop_.load()) work();
        }) {
    while (!ready_.load()) std::this_thread::yield();
  }
  ~Busy() {
    stop_.store(true);
    thread_.join();
  }
  const SampledThread& sampled() const { return thread_of_; }

 private:
  SampledThread thread_of_;
  std::atomic<bool> ready_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

std::unique_ptr<CpuSampler> started(const SampledThread& thread, CpuSampler::Options options = {}) {
  return std::move(CpuSampler::start({&thread, 1}, options)).value();
}

struct Taken {
  std::uint64_t weight = 0;
  std::map<std::string, std::uint64_t> containing;  // weight of the stacks with this function
};

Taken taken_from(CpuSampler& sampler) {
  Taken taken;
  sampler.drain(all, [&](const CpuSampler::Sample& sample) {
    taken.weight += sample.weight;
    std::map<std::string, std::uint64_t> once;
    for (const AddressName& name : symbolize(sample.frames).names) once[name.function] = 1;
    for (const auto& each : once) taken.containing[each.first] += sample.weight;
  });
  return taken;
}

/// Drains until the samples have this weight, for at most 20 s.
Taken take_until(CpuSampler& sampler, std::uint64_t weight) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  Taken taken;
  while (taken.weight < weight && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
    const Taken more = taken_from(sampler);
    taken.weight += more.weight;
    for (const auto& [name, count] : more.containing) taken.containing[name] += count;
  }
  return taken;
}

bool former_action_is(void (*handler)(int)) {
  struct sigaction action{};
  ::sigaction(SIGPROF, nullptr, &action);
  return action.sa_handler == handler;
}

TEST(CpuSampler, FindsTheFunctionThatUsesTheTime) {
  const Busy busy([] { burn_in_the_sampler_test(1ms); });
  const auto begin = std::chrono::steady_clock::now();
  const auto sampler = started(busy.sampled());
  const Taken taken = take_until(*sampler, 40);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  ASSERT_GE(taken.weight, 40u);
  EXPECT_LE(static_cast<double>(taken.weight), 99 * took.count() + 2) << "at most 99 Hz";
  const auto found =
      taken.containing.find("weir::os::(anonymous namespace)::burn_in_the_sampler_test");
  ASSERT_NE(found, taken.containing.end());
  EXPECT_GE(static_cast<double>(found->second), 0.6 * static_cast<double>(taken.weight));
  EXPECT_EQ(sampler->dropped(), 0u);
}

TEST(CpuSampler, TakesNothingFromAThreadThatSleeps) {
  std::atomic<bool> waits{true};
  {
    const Busy busy([&] { waits.wait(true); });
    const auto sampler = started(busy.sampled());
    burn_in_the_sampler_test(200ms);
    EXPECT_LE(taken_from(*sampler).weight, 1u);
    waits.store(false);
    waits.notify_all();
  }
}

TEST(CpuSampler, CallsItsHookOnTheSampledThread) {
  static std::atomic<pthread_t> called_on;
  const Busy busy([] { burn_in_the_sampler_test(1ms); });
  const auto sampler =
      started(busy.sampled(),
              {.hertz = 200, .hook = [](void* context, std::size_t thread) noexcept {
                 called_on.store(::pthread_self());
                 errno = EXDEV;  // the handler restores it
                 return CpuSampler::Facts{reinterpret_cast<std::uintptr_t>(context), thread + 7};
               }});
  std::uint64_t count = 0;
  while (count < 5) {
    std::this_thread::yield();
    sampler->drain(all, [&](const CpuSampler::Sample& sample) {
      ++count;
      EXPECT_EQ(sample.facts.activity, 0u);
      EXPECT_EQ(sample.facts.label, 7u);
    });
  }
  EXPECT_TRUE(::pthread_equal(called_on.load(), busy.sampled().handle));
}

TEST(CpuSampler, PreservesErrno) {
  static std::atomic<unsigned> changed{0};
  const Busy busy([] {
    errno = ERANGE;
    burn_in_the_sampler_test(2ms);
    if (errno != ERANGE) changed.fetch_add(1);
  });
  const auto sampler =
      started(busy.sampled(), {.hertz = 250, .hook = [](void*, std::size_t) noexcept {
                                 errno = EXDEV;
                                 return CpuSampler::Facts{};
                               }});
  EXPECT_GE(take_until(*sampler, 20).weight, 20u);
  EXPECT_EQ(changed.load(), 0u);
}

TEST(CpuSampler, RunsOnceInAProcess) {
  const Busy busy([] { std::this_thread::yield(); });
  const auto first = started(busy.sampled());
  const auto second = CpuSampler::start({&busy.sampled(), 1}, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), Errc::conflict);
  first->stop();
  EXPECT_TRUE(CpuSampler::start({&busy.sampled(), 1}, {}));
}

TEST(CpuSampler, RefusesAThreadThatBlocksItsSignal) {
  SampledThread thread = SampledThread::of_this_thread();
  EXPECT_FALSE(thread.blocks_signal);
  thread.blocks_signal = true;
  EXPECT_EQ(CpuSampler::start({&thread, 1}, {}).error(), Errc::unsupported);
}

TEST(CpuSampler, StopsWhatItStartedIfAThreadIsGone) {
  SampledThread gone;
  std::thread([&] { gone = SampledThread::of_this_thread(); }).join();
  const SampledThread threads[] = {SampledThread::of_this_thread(), gone};
  const auto sampler = CpuSampler::start(threads, {});
  EXPECT_FALSE(sampler);
  EXPECT_TRUE(former_action_is(SIG_DFL));
  EXPECT_TRUE(CpuSampler::start({threads, 1}, {})) << "the next one may start";
}

TEST(CpuSampler, AddsThreadsWhileItRuns) {
  const Busy first([] { burn_in_the_sampler_test(1ms); });
  const Busy second([] { burn_in_the_sampler_test(1ms); });
  SampledThread gone;
  std::thread([&] { gone = SampledThread::of_this_thread(); }).join();
  SampledThread blocking = second.sampled();
  blocking.blocks_signal = true;
  const auto sampler = started(first.sampled(), {.hertz = 250});
  EXPECT_FALSE(sampler->add(gone));
  EXPECT_EQ(sampler->add(blocking).error(), Errc::unsupported);
  EXPECT_TRUE(sampler->add(second.sampled()));
  std::map<std::size_t, unsigned> samples;
  const auto end = std::chrono::steady_clock::now() + 20s;
  while ((samples[0] < 3 || samples[1] < 3) && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
    sampler->drain(all, [&](const CpuSampler::Sample& sample) { ++samples[sample.thread]; });
  }
  EXPECT_GE(samples[0], 3u);
  EXPECT_GE(samples[1], 3u) << "the index after the first one";
  EXPECT_EQ(samples.size(), 2u);
  sampler->stop();
  EXPECT_EQ(sampler->add(second.sampled()).error(), Errc::closed);
  EXPECT_TRUE(former_action_is(SIG_DFL));
}

TEST(CpuSampler, OutlivesAThreadThatEnds) {
  auto busy = std::make_unique<Busy<void (*)()>>([] { burn_in_the_sampler_test(1ms); });
  const Busy stays([] { burn_in_the_sampler_test(1ms); });
  const auto sampler = started(stays.sampled(), {.hertz = 999});
  ASSERT_TRUE(sampler->add(busy->sampled()));
  EXPECT_GE(take_until(*sampler, 10).weight, 10u);
  busy.reset();
  EXPECT_GE(take_until(*sampler, 10).weight, 10u);
}

TEST(CpuSampler, ContinuesAfterAPartOfTheSamples) {
  const Busy first([] { burn_in_the_sampler_test(1ms); });
  const Busy second([] { burn_in_the_sampler_test(1ms); });
  const SampledThread threads[] = {first.sampled(), second.sampled()};
  const auto sampler = std::move(CpuSampler::start(threads, {.hertz = 250})).value();
  burn_in_the_sampler_test(300ms);
  sampler->stop();
  std::vector<std::size_t> order;
  bool more = true;
  while (more) {
    const std::size_t before = order.size();
    more = sampler->drain(
        3, [&](const CpuSampler::Sample& sample) { order.push_back(sample.thread); });
    ASSERT_LE(order.size() - before, 3u);
    ASSERT_TRUE(!more || order.size() == before + 3);
  }
  EXPECT_TRUE(std::ranges::is_sorted(order)) << "one thread after the other";
  EXPECT_EQ(std::ranges::count(order, 1u) > 0, true);
}

std::atomic<unsigned> foreign_signals{0};

TEST(CpuSampler, PassesForeignSignalsOnAndRestoresTheirAction) {
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = [](int) { foreign_signals.fetch_add(1); };
  ASSERT_EQ(::sigaction(SIGPROF, &action, &before), 0);
  {
    const auto sampler = started(SampledThread::of_this_thread());
    ASSERT_EQ(::pthread_kill(::pthread_self(), SIGPROF), 0);
    burn_in_the_sampler_test(50ms);
    EXPECT_EQ(foreign_signals.load(), 1u) << "signals of the timer are not passed on";
  }
  EXPECT_TRUE(former_action_is(action.sa_handler));
  ASSERT_EQ(::sigaction(SIGPROF, &before, nullptr), 0);
}

// The default action of SIGPROF ends the process: a late signal must not find it.
TEST(CpuSampler, LeavesNoSignalBehind) {
  const Busy busy([] { burn_in_the_sampler_test(1ms); });
  for (int round = 0; round < 30; ++round) {
    const auto sampler = started(busy.sampled(), {.hertz = 999});
    burn_in_the_sampler_test(5ms);
  }
  EXPECT_TRUE(former_action_is(SIG_DFL));
}

[[gnu::noinline]] void throw_and_catch(int depth) {
  if (depth == 0) throw std::runtime_error("a text that is long enough to be on the heap");
  try {
    throw_and_catch(depth - 1);
  } catch (const std::runtime_error& error) {
    if (depth < 3) throw;
    if (std::string(error.what()).empty()) std::abort();
  }
}

/// The time of the stress test: a few seconds, or that of the variable for long runs.
std::chrono::seconds stress_length() {
  const char* const text = std::getenv("WEIR_PROFILE_STRESS_SECONDS");
  return std::chrono::seconds(text == nullptr ? 2 : std::max(1, std::atoi(text)));
}

TEST(CpuSamplerStress, SurvivesExceptionsAllocationsAndOtherSignals) {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  struct sigaction before{};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  {
    const auto work = [] {
      throw_and_catch(8);
      const std::vector<std::string> texts(64, std::string(200, 'x'));
      sink = sink + static_cast<unsigned>(texts.size());
    };
    const Busy one(work);
    const Busy other(work);
    const SampledThread threads[] = {one.sampled(), other.sampled()};
    const auto end = std::chrono::steady_clock::now() + stress_length();
    std::uint64_t weight = 0;
    while (std::chrono::steady_clock::now() < end) {
      auto sampler = std::move(CpuSampler::start(threads, {.hertz = 999})).value();
      for (int round = 0; round < 20; ++round) {
        for (const SampledThread& each : threads) ::pthread_kill(each.handle, SIGUSR1);
        const auto pause = std::chrono::steady_clock::now() + 5ms;
        while (std::chrono::steady_clock::now() < pause) std::this_thread::yield();
        sampler->drain(all, [&](const CpuSampler::Sample& sample) { weight += sample.weight; });
      }
    }
    EXPECT_GT(weight, 10u);
  }
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
}

TEST(CopyOwnMemory, CopiesMemoryAndRefusesWhatIsNotMapped) {
  const std::string text = "a text";
  std::string copy(text.size(), '\0');
  if (!copy_own_memory(text.data(), copy.data(), copy.size())) {
    GTEST_SKIP() << "process_vm_readv(2) is refused here";
  }
  EXPECT_EQ(copy, text);
  EXPECT_FALSE(copy_own_memory(nullptr, copy.data(), 1));
  void* const page = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_FALSE(copy_own_memory(page, copy.data(), 1));
  ::munmap(page, 4096);
}

}  // namespace
}  // namespace weir::os
