// Checks between turns how much of its clients' requests an HTTP server has read.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "weir/http/router/router.hpp"
#include "weir/http/server/limits.hpp"
#include "weir/sim/host.hpp"

namespace weir::simulate {

/// Returns how many bytes a server may have received on a connection beyond its present request.
/// The limit is the largest of one read and two heads, plus the bytes that the server drops on a
/// closing connection.
std::size_t read_ahead_max(const http::Limits& limits) noexcept;

/// The test requires that the server processes one request per connection at a time, however much
/// the client pipelines. It reads at most read_ahead_max() bytes beyond that request. The rest
/// waits in the kernel, which slows the client down.
/// Threads: those of one World.
/// Lifetime: outlives the server.
class RequestMonitor {
 public:
  /// Returns the end of the first `requests` requests of this client, as an offset in the bytes
  /// that it sends.
  using EndOf = std::function<std::size_t(const Endpoint& client, std::size_t requests)>;

  RequestMonitor(std::size_t read_ahead_max, EndOf end_of)
      : read_ahead_max_(read_ahead_max), end_of_(std::move(end_of)) {}

  /// Watches the requests of these routes. The caller calls it before they are served.
  void see(http::Router& routes);
  /// A request in progress, for a server without routes.
  class ActiveRequest {
   public:
    ActiveRequest(RequestMonitor& watch, const Endpoint& client);
    ~ActiveRequest() { --clients_.active; }
    ActiveRequest(const ActiveRequest&) = delete;
    ActiveRequest& operator=(const ActiveRequest&) = delete;

   private:
    friend RequestMonitor;
    struct ClientState {
      std::size_t begun = 0;
      std::size_t active = 0;
    };
    ClientState& clients_;
  };

  /// Returns the violation for sim::World::always(); empty if all rules held.
  std::string find_violation(sim::Host& server);
  /// Returns the largest number of bytes received on a connection beyond its present request.
  std::size_t read_ahead_max_seen() const noexcept { return read_ahead_max_seen_; }

 private:
  Task<http::Response> work_on(http::Request& request, http::Next next);

  std::size_t read_ahead_max_;
  EndOf end_of_;
  std::map<std::string, ActiveRequest::ClientState> clients_;  // state by client
  std::string violation_;
  std::size_t read_ahead_max_seen_ = 0;
  unsigned turns_ = 0;
};

}  // namespace weir::simulate
