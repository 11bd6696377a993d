// A LimitedServer runs examples/limits.cpp with given limits and reads its state during an
// attack.
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

/// A LimitedServer is a process with two loops that serves on a port of 127.0.0.1. The destructor
/// kills the process.
/// Threads: any, except for stop().
class LimitedServer {
 public:
  /// Starts the server. `limits` are options of the program, such as
  /// "--limits.connections_max=200". Throws if the program does not start to serve.
  LimitedServer(BackendName backend, const std::vector<std::string>& limits);

  std::uint16_t port() const noexcept { return port_; }
  const Process& process() const noexcept { return process_; }
  /// Returns the maximum of the server's memory in bytes, as the server reports it.
  std::uint64_t memory_bound() const noexcept { return memory_bound_; }

  /// Requests the server's report on `client` and returns the total in the line `name`. Returns
  /// nullopt if the report has no such line.
  static std::optional<std::uint64_t> total(Client& client, std::string_view name);
  /// Requests the report on a new connection, which is part of the counted connections. The
  /// server must not reject connections meanwhile.
  std::optional<std::uint64_t> total(std::string_view name) const;
  /// Waits until no other client is connected and the server has released their resources.
  /// Returns: false if the timeout passes first.
  bool wait_until_recovered() const;

  /// Drains the server and waits for its end.
  /// Returns: the exit status, or nullopt if the timeout passes first.
  std::optional<int> stop();

 private:
  Process process_;
  std::uint16_t port_ = 0;
  std::uint64_t memory_bound_ = 0;
  std::size_t descriptors_ = 0;
};

}  // namespace weir::tests
