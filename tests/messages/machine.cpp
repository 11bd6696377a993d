#include "tests/messages/machine.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string_view>
#include <utility>

#include "tests/server.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/sim/world.hpp"

namespace weir::tests::messages {
namespace {

/// The kernel's platform. It keeps the lines that it is to log.
class LoggingPlatform final : public OsPlatform {
 public:
  void write_line(std::string_view line) noexcept override {
    if (line.contains(": slow loop turn: ")) return;
    const std::lock_guard lock(mutex_);
    lines_.emplace_back(line);
  }
  std::vector<std::string> take_lines() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

int run_on_one_core(loop::Platform& platform, BackendChoice backend,
                    const std::function<Task<>(Scope&)>& body) {
  RuntimeOptions options;
  options.cores = 1;
  options.backend = backend;
  options.pin = options.handle_signals = options.announce = false;
  Runtime runtime(platform, options);
  return runtime.run_on_each_core([&](Scope& scope) -> Task<> {
    co_await body(scope);
    runtime.drain();
  });
}

}  // namespace

std::string name_of(Machine machine) {
  constexpr std::array names{"Uring", "Uring61", "Epoll", "Poll", "World"};
  return names.at(static_cast<std::size_t>(machine));
}

std::optional<std::string> lacks(Machine machine) {
  if (machine == Machine::uring) return skip_reason({"uring"});
  if (machine == Machine::uring_6_1) return skip_reason({"uring:6.1"});
  return std::nullopt;
}

void run_on(Machine machine, const std::function<Task<>(Scope&, const TakeLines&)>& body) {
  if (machine == Machine::world) {
    sim::World world;
    sim::Host& host = world.host("machine");
    std::size_t taken = 0;
    const TakeLines take_lines = [&] {
      const std::vector<std::string> all = host.logged();
      std::vector<std::string> lines(all.begin() + static_cast<std::ptrdiff_t>(taken), all.end());
      taken = all.size();
      return lines;
    };
    host.start([&](loop::Platform& platform) {
      return run_on_one_core(platform, BackendChoice::automatic,
                             [&](Scope& scope) { return body(scope, take_lines); });
    });
    const auto report = world.run_until_done(std::chrono::hours(1));
    EXPECT_TRUE(report.ok()) << report.text();
    return;
  }
  constexpr std::array choices{BackendChoice::uring, BackendChoice::uring_6_1, BackendChoice::epoll,
                               BackendChoice::poll};
  LoggingPlatform platform;
  const TakeLines take_lines = [&platform] { return platform.take_lines(); };
  const int status = run_on_one_core(platform, choices.at(static_cast<std::size_t>(machine)),
                                     [&](Scope& scope) { return body(scope, take_lines); });
  EXPECT_EQ(status, 0);
}

}  // namespace weir::tests::messages
