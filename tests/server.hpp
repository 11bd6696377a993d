// A Server starts an example program on a backend, connects clients to it and drains it.
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
inline constexpr std::array<BackendName, 4> all_backends{
    {{"uring"}, {"uring:6.1"}, {"epoll"}, {"poll"}}};

/// Returns the parameter as a part of a test's name.
std::string name_of(const testing::TestParamInfo<BackendName>& info);

/// Returns the reason why this machine's kernel cannot run the backend, found without Weir.
/// Returns nullopt if the backend must work.
std::optional<std::string> skip_reason(BackendName backend);

/// Returns the backends for tests that take long: all of them, or one that is chosen anew in each
/// process if the environment variable WEIR_SWEEP_SECONDS gives sweeps less than a minute. The name
/// of a failed test has the backend.
std::vector<BackendName> sampled_backends();

/// Returns the backend as an option of a runtime in this process.
BackendChoice to_backend_choice(BackendName name);

/// Returns a free port on a loopback address that no other process uses. Another process
/// therefore cannot take the port before the test listens on it.
os::Address free_address();

/// A Server is a running server on a port of 127.0.0.1 that the kernel chose. The destructor
/// kills it.
class Server {
 public:
  /// Starts examples/`example`.cpp with two loops. `more` are further options, which override the
  /// defaults. All loops listen when the constructor returns. Throws if the program does not
  /// start to serve.
  Server(std::string_view example, BackendName backend, const std::vector<std::string>& more = {});

  std::uint16_t port() const noexcept { return port_; }
  Process& process() noexcept { return process_; }
  Client connect() const { return Client(port_); }
  /// Sends `request` on a connection of its own and reads the answer.
  Result<Response> exchange(std::string_view request, std::string_view method = "GET") const {
    return connect().exchange(request, method);
  }
  /// Drains the server with SIGTERM and waits for its end.
  /// Returns: the exit status, which is not 0 if a sanitizer found an error; nullopt if the time
  /// is up.
  std::optional<int> stop();

 private:
  Process process_;
  std::uint16_t port_ = 0;
};

/// EachBackend runs a test on each backend. It skips a backend that the kernel refuses, and
/// prints the reason.
class EachBackend : public testing::TestWithParam<BackendName> {
 protected:
  void SetUp() override {
    if (const auto reason = skip_reason(GetParam())) GTEST_SKIP() << *reason;
  }
};

}  // namespace weir::tests
