// What an HTTP server has taken of its clients' requests, looked at between turns of its cores.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "weir/http/limits.hpp"
#include "weir/http/router/router.hpp"
#include "weir/sim/host.hpp"

namespace weir::simulate {

/// How many bytes a server may have received of a connection beyond the request that it works on:
/// what one read gives, or a head takes; and what it drops of a connection that it ends.
std::size_t ahead_max(const http::Limits& limits) noexcept;

/// What must hold for each connection, however much its client pipelines: one request is worked on
/// at a time, and nothing is read beyond it but what may be buffered; see ahead_max(). The rest
/// waits in the kernel, which slows the client down.
/// Threads: those of one World. Lifetime: outlives the server.
class RequestWatch {
 public:
  /// Where the first `requests` requests of this client end, in bytes of what it sends.
  using EndOf = std::function<std::size_t(const Endpoint& client, std::size_t requests)>;

  RequestWatch(std::size_t ahead_max, EndOf end_of)
      : ahead_max_(ahead_max), end_of_(std::move(end_of)) {}

  /// From now on it sees the requests of these routes; before they are served.
  void see(http::Router& routes);
  /// A request that is worked on, for a server that has no routes.
  class Working {
   public:
    Working(RequestWatch& watch, const Endpoint& client);
    ~Working() { --seen_.worked_on; }
    Working(const Working&) = delete;
    Working& operator=(const Working&) = delete;

   private:
    friend RequestWatch;
    struct Seen {
      std::size_t begun = 0;
      std::size_t worked_on = 0;
    };
    Seen& seen_;
  };

  /// For World::always(); empty if all is well.
  std::string find_fault(WorldHost& server);
  /// The most that has been received of a connection beyond the request that was worked on.
  std::size_t ahead_most() const noexcept { return ahead_most_; }

 private:
  Task<http::Response> work_on(http::Request& request, http::Next next);

  std::size_t ahead_max_;
  EndOf end_of_;
  std::map<std::string, Working::Seen> seen_;  // by client
  std::string fault_;
  std::size_t ahead_most_ = 0;
  unsigned turns_ = 0;
};

}  // namespace weir::simulate
