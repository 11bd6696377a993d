// Simulates clients of HTTP/2 that vanish at each byte of a request with a body.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/simulate/cut_client.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/os/address.hpp"
#include "weir/sim/detail/random.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"

namespace weir::simulate {

struct Http2CutScenarioOptions {
  unsigned cores = 2;    ///< number of cores of the server
  unsigned workers = 8;  ///< number of connections at a time
};

/// All connections send the same POST, one for each of its prefixes. After its prefix, a client
/// closes the connection, closes its side only, or is silent. The test requires these rules:
/// - a handler that has begun ends, and its read of the body fails;
/// - no handler sees a complete body before the request has been sent; padding at its end may lack;
/// - the server answers a whole request if the client keeps the connection;
/// - the server closes all connections, and keeps no memory for them.
/// Threads: those of one World.
/// Lifetime: outlives the run.
class Http2CutScenario {
 public:
  Http2CutScenario(sim::Random& random, const Http2CutScenarioOptions& options);

  const Http2CutScenarioOptions& options() const noexcept { return options_; }
  /// The main function of the server.
  int serve(loop::Platform& host);
  /// The main function of the clients' core.
  Task<Result<>> ask(Scope& scope, Endpoint server);
  /// Returns true if all clients have left.
  bool done() const noexcept { return done_; }

  /// Returns a violation of a rule, or an empty text. Call it after done(), some time later.
  std::string find_violation() const;
  /// Returns the number of handlers that saw an error of the body, or the whole body.
  std::size_t failed() const noexcept { return failed_; }
  std::size_t complete() const noexcept { return complete_; }
  /// Returns the number of prefixes.
  std::size_t size() const noexcept { return requests_.size(); }

 private:
  /// One prefix of the request.
  struct Cut {
    Leaving way = Leaving::close;
    bool began = false;
    bool failed = false;
    bool complete = false;
  };
  /// A handler that runs.
  class Running;

  std::string head_of(std::size_t number) const;
  std::string request_of(std::size_t number) const;
  void draw_body(sim::Random& random);
  Task<> send_prefixes(Endpoint server);
  Task<> send_prefix(Endpoint server, std::size_t size);
  void fail_with(std::size_t number, const std::string& what);

  sim::Random& random_;
  Http2CutScenarioOptions options_;
  std::string target_;          // the path of the request
  std::string content_;         // of the body
  std::string content_length_;  // the header; empty if there is none
  std::string body_;            // the frames of the body
  bool with_other_ = false;     // a slow request is on the same connection
  std::size_t begin_ = 0;       // bytes of the request until its head is complete
  std::size_t padding_ = 0;     // bytes at the end of the last frame
  std::vector<Cut> requests_;   // for each number of bytes
  std::size_t next_ = 0;
  std::size_t running_ = 0;  // handlers
  std::size_t failed_ = 0;
  std::size_t complete_ = 0;
  bool done_ = false;
  std::string violation_;
};

}  // namespace weir::simulate
