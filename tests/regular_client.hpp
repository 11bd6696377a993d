// A client that does nothing wrong, on a thread of its own, while others attack.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "tests/client.hpp"

namespace weir::tests {

/// Asks the server of examples/limits.cpp again and again, on a connection that is open before
/// anything else happens, singly and in pipelines. Whatever others do, each answer must come and be
/// right. Between two requests it makes a pause.
class RegularClient {
 public:
  explicit RegularClient(std::uint16_t port);
  ~RegularClient() { stop(); }
  RegularClient(const RegularClient&) = delete;
  RegularClient& operator=(const RegularClient&) = delete;

  std::size_t answered() const { return answered_; }
  /// What was wrong, or nothing.
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
