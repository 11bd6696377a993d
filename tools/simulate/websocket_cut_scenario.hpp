// Simulates clients of WebSockets that vanish at each byte of what they send.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/simulate/cut_client.hpp"
#include "tools/simulate/websocket_service.hpp"
#include "weir/os/address.hpp"
#include "weir/sim/detail/random.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"

namespace weir::simulate {

/// All connections send the same handshake and the same frames to one route of a WebSocketService,
/// one for each prefix of these bytes. After its prefix, a client closes the connection, closes its
/// side only, or is silent. The test requires these rules:
/// - what the server sends are valid frames;
/// - the messages return that the prefix has whole, in their order; all of them return to a client
///   that keeps the connection;
/// - the server closes all connections, and keeps no memory for them;
/// - the rules of WebSocketService.
/// Threads: those of one World.
/// Lifetime: outlives the run.
class WebSocketCutScenario {
 public:
  WebSocketCutScenario(sim::Random& random, WebSocketService& service);

  /// The main function of the clients' core.
  Task<Result<>> ask(Scope& scope, Endpoint server);
  /// Returns true if all clients have left.
  bool done() const noexcept { return done_; }
  /// Returns a violation of a rule, or an empty text. Call it after done(), some time later.
  std::string find_violation() const;
  /// Returns the number of messages that have returned.
  std::size_t answered() const noexcept { return answered_; }
  /// Returns the number of prefixes.
  std::size_t size() const noexcept { return request_.size() + 1; }

 private:
  /// A message of the request.
  struct Sent {
    std::size_t end;  // bytes of the request until its end
    std::string text;
  };

  void add_frame(int first, std::string_view payload);
  void add_message();
  Task<> send_prefixes(Endpoint server);
  Task<> send_prefix(Endpoint server, std::size_t size);
  void judge(std::size_t size, Leaving way, std::string received);
  void fail_with(std::size_t number, const std::string& what);

  sim::Random& random_;
  WebSocketService& service_;
  std::string target_;
  std::string request_;
  std::size_t head_size_ = 0;  // of the request
  std::vector<Sent> messages_;
  std::size_t next_ = 0;
  std::size_t answered_ = 0;
  bool done_ = false;
  std::string violation_;
};

}  // namespace weir::simulate
