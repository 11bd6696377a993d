// A RandomClient runs clients that pipeline, stall, stop in the middle or reset, and checks all
// answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/client.hpp"
#include "weir/os/address.hpp"

namespace weir::tests {

/// An ExpectedRequest is a request that a client may send, and the body of a 200 answer to it.
struct ExpectedRequest {
  std::string request;
  std::string body;
  bool may_be_missing =
      false;  ///< True if 404 is correct too, since the route is added and removed
};

/// RandomClientCounts counts the actions of all clients of one thread.
struct RandomClientCounts {
  std::size_t clients = 0;
  std::size_t refused = 0;   ///< connection attempts without a listening server
  std::size_t requests = 0;  ///< requests sent completely or in part
  std::size_t answers = 0;   ///< complete and correct answers
  std::vector<std::string> faults;

  RandomClientCounts& operator+=(const RandomClientCounts& other);
};

/// A RandomClient runs the clients of one thread. Answers must come in the order of the requests,
/// and each must be correct. An answer may be cut only by the end of its connection. The number of
/// answers is not checked, because the server may drain or stop, or the client may have left.
/// The requests fit the routes of the stress test: /number, /slow, /lines, /echo and /course.
class RandomClient {
 public:
  RandomClient(const os::Address& server, std::uint32_t seed) : server_(server), random_(seed) {}
  /// Runs one more client until it ends or stalls. A stalled client stays open while some more
  /// clients run. Returns false if there was no server.
  bool run_one();
  const RandomClientCounts& counts() const noexcept { return counts_; }

 private:
  struct Stalled {
    Client client;
    std::vector<ExpectedRequest> requests;
  };

  std::size_t below(std::size_t end) { return random_() % end; }
  bool one_in(std::size_t count) { return below(count) == 0; }
  ExpectedRequest choose();
  void send(Client& client, std::string_view text);
  void finish(Client client, const std::vector<ExpectedRequest>& requests);
  void check_responses(const std::vector<ExpectedRequest>& requests, Client& client);

  os::Address server_;
  std::minstd_rand random_;
  std::vector<Stalled> stalled_;
  RandomClientCounts counts_;
};

}  // namespace weir::tests
