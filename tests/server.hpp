// An example program that serves, as a test uses it: started on a backend, talked to, drained.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/client.hpp"
#include "tests/process.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/os/address.hpp"

namespace weir::tests {

/// A value of --backend.
struct BackendName {
  std::string_view option;
  bool operator==(const BackendName&) const = default;
  friend void PrintTo(const BackendName& name, std::ostream* out) { *out << name.option; }
};
inline constexpr std::array<BackendName, 4> every_backend{
    {{"uring"}, {"uring:6.1"}, {"epoll"}, {"poll"}}};

/// The parameter as a part of a test's name.
std::string name_of(const testing::TestParamInfo<BackendName>& info);

/// Why this machine's kernel cannot have the backend, asked without Weir; nullopt when it must
/// work.
std::optional<std::string> why_not(BackendName backend);

/// The same for a runtime in this process.
BackendChoice choice_of(BackendName name);

/// A port that is free. It is of a loopback address that no other process uses, so that nobody
/// takes it before it is listened on.
os::Address free_address();

/// A running server on a port of 127.0.0.1 that the kernel chose. Killed when destroyed.
class Server {
 public:
  /// Starts examples/`example`.cpp with two loops; `more` are further options, which win. All its
  /// loops listen when this returns. Throws when it does not serve.
  Server(std::string_view example, BackendName backend, const std::vector<std::string>& more = {});

  std::uint16_t port() const noexcept { return port_; }
  Process& process() noexcept { return process_; }
  Client connect() const { return Client(port_); }
  /// On a connection of its own: sends `request` and reads the answer.
  Result<Response> ask(std::string_view request, std::string_view method = "GET") const {
    return connect().exchange(request, method);
  }
  /// Drains it with SIGTERM and waits for its end: the exit status, nullopt when time is up. What
  /// the sanitizers found makes it another than 0.
  std::optional<int> stop();

 private:
  Process process_;
  std::uint16_t port_ = 0;
};

/// A test on each backend; one that the kernel refuses is skipped, with the reason.
class EachBackend : public testing::TestWithParam<BackendName> {
 protected:
  void SetUp() override {
    if (const auto reason = why_not(GetParam())) GTEST_SKIP() << *reason;
  }
};

}  // namespace weir::tests
