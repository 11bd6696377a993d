#include "tests/server.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <stdexcept>

#include "weir/os/detail/io/fd.hpp"
#include "weir/os/detail/io/socket.hpp"
#include "weir/os/test/io_uring_refusal.hpp"
#include "weir/task/test/sweep_budget.hpp"

namespace weir::tests {
namespace {

constexpr std::size_t loops_unless_given = 2;

std::vector<std::string> arguments_of(BackendName backend, std::vector<std::string> more) {
  const auto unless_given = [&](const std::string& option, std::string_view value) {
    if (std::ranges::find(more, option) == more.end()) {
      more.insert(more.end(), {option, std::string(value)});
    }
  };
  unless_given("--port", "0");
  unless_given("--address", "127.0.0.1");
  unless_given("--backend", backend.option);
  unless_given("--cores", std::to_string(loops_unless_given));
  return more;
}

}  // namespace

std::string name_of(const testing::TestParamInfo<BackendName>& info) {
  std::string name(info.param.option);
  std::ranges::replace_if(name, [](char each) { return each == ':' || each == '.'; }, '_');
  return name;
}

std::optional<std::string> skip_reason(BackendName backend) {
  if (!backend.option.starts_with("uring")) return std::nullopt;
  const std::string reason = os::io_uring_refusal();
  return reason.empty() ? std::nullopt : std::optional(reason);
}

std::vector<BackendName> sampled_backends() {
  if (!SweepBudget::samples()) return {all_backends.begin(), all_backends.end()};
  std::vector<BackendName> usable;
  std::ranges::copy_if(all_backends, std::back_inserter(usable),
                       [](BackendName each) { return !skip_reason(each); });
  const std::size_t all = usable.size();
  return SweepBudget::sample(std::move(usable), all);
}

BackendChoice to_backend_choice(BackendName name) {
  if (name.option == "uring") return BackendChoice::uring;
  if (name.option == "uring:6.1") return BackendChoice::uring_6_1;
  return name.option == "epoll" ? BackendChoice::epoll : BackendChoice::poll;
}

os::Address free_address() {
  const auto pid = static_cast<unsigned>(::getpid());
  const std::string host = "127." + std::to_string(1 + (pid >> 16 & 0x7f)) + "." +
                           std::to_string(pid >> 8 & 0xff) + "." + std::to_string(pid & 0xff);
  const os::Fd listener = os::open_listener(os::Address::parse(host + ":0").value()).value();
  return os::local_address(listener.get()).value();
}

Server::Server(std::string_view example, BackendName backend, const std::vector<std::string>& more)
    : process_(Process::example(example, arguments_of(backend, more))) {
  const auto port = process_.wait_for_port();
  if (!port) throw std::runtime_error(std::string(example) + ": " + process_.errors());
  port_ = *port;
  // The line reports the first loop that listens. Later checks need all loops.
  const auto cores = std::ranges::find(more, "--cores");
  const std::size_t loops = cores == more.end() ? loops_unless_given : std::stoul(*(cores + 1));
  if (!eventually([&] { return process_.sockets() >= loops; })) {
    throw std::runtime_error(std::string(example) + " does not listen on every core");
  }
}

std::optional<int> Server::stop() {
  process_.signal(SIGTERM);
  return process_.wait_for_exit();
}

}  // namespace weir::tests
