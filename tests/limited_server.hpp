// The server of examples/limits.cpp, given its limits, and what can be seen of it while it is
// attacked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/client.hpp"
#include "tests/process.hpp"
#include "tests/server.hpp"

namespace weir::tests {

/// Two loops on a port of 127.0.0.1. Killed when destroyed. Threads: any, but for stop().
class LimitedServer {
 public:
  /// `limits`: options of the program, such as "--limits.connections_max=200". Throws when it does
  /// not serve.
  LimitedServer(BackendName backend, const std::vector<std::string>& limits);

  std::uint16_t port() const noexcept { return port_; }
  const Process& process() const noexcept { return process_; }
  /// What it says that it may hold in all, in bytes.
  std::uint64_t bound() const noexcept { return bound_; }

  /// The total in that line of its report, asked on `client`; nullopt where there is none.
  static std::optional<std::uint64_t> total(Client& client, std::string_view name);
  /// The same on a connection of its own, which is among those that are counted. Nobody may be
  /// turned away meanwhile.
  std::optional<std::uint64_t> total(std::string_view name) const;
  /// Waits until nobody else is connected, and it has given back what the others had.
  bool recovers() const;

  /// Drains it and waits for its end: the exit status, nullopt when time is up.
  std::optional<int> stop();

 private:
  Process process_;
  std::uint16_t port_ = 0;
  std::uint64_t bound_ = 0;
  std::size_t descriptors_ = 0;
};

}  // namespace weir::tests
