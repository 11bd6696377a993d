// A RegularClient behaves correctly, on a thread of its own, while other clients attack the
// server.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "tests/client.hpp"

namespace weir::tests {

/// A RegularClient sends requests to the server of examples/limits.cpp, singly and in pipelines,
/// with a pause after each. It uses one connection, which is open before the attack begins. Each
/// answer must come and be correct while other clients attack.
class RegularClient {
 public:
  explicit RegularClient(std::uint16_t port);
  ~RegularClient() { stop(); }
  RegularClient(const RegularClient&) = delete;
  RegularClient& operator=(const RegularClient&) = delete;

  std::size_t answered() const { return answered_; }
  /// Returns the failure, or an empty string.
  std::string fault() const;
  void stop();

 private:
  void run();
  std::string ask(std::size_t number);

  Client client_;
  std::atomic<std::size_t> answered_{0};
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::string fault_;
  std::thread thread_;
};

}  // namespace weir::tests
