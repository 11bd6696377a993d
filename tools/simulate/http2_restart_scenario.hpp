// Simulates an HTTP client that shares connections of HTTP/2, while its server restarts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <system_error>

#include "weir/loop/contract/detail/platform.hpp"
#include "weir/sim/detail/random.hpp"
#include "weir/sim/world.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"

namespace weir::http {
class Client;
}

namespace weir::simulate {

/// The way in which a process of the server ends.
enum class Http2Restart : std::uint8_t {
  handover,  ///< the next process takes its sockets over, and it drains
  drain,     ///< it drains, and the next process begins some time later
  kill,      ///< it dies at any moment, and the next process begins immediately or later
};

struct Http2RestartScenarioOptions {
  Http2Restart restart = Http2Restart::handover;
  unsigned cores = 2;         ///< number of cores of the server
  unsigned workers = 20;      ///< number of requests at a time
  unsigned requests = 20;     ///< number of requests of each worker
  unsigned processes = 6;     ///< number of processes of the server
  bool may_time_out = false;  ///< true: the World injects faults, so that requests may time out
  bool repeats_posts =
      false;  ///< true: the test must find a violation, since each POST is repeated
};

/// The workers share one client. The test requires these rules:
/// - each request succeeds if the sockets of the server are handed over;
/// - otherwise a request succeeds, or fails because no process listens or its connection is lost;
/// - no POST is executed twice, and a successful one is executed once;
/// - a POST is not executed if it fails for the lack of a connection;
/// - a GET is executed at most twice;
/// - no connection is left some time after the last request.
/// Threads: those of one World.
/// Lifetime: outlives the run.
class Http2RestartScenario {
 public:
  Http2RestartScenario(sim::World& world, const Http2RestartScenarioOptions& options);

  /// Starts the first process of the server, and plans the others.
  void begin();
  /// The main function of the client's core.
  Task<Result<>> ask(Scope& scope);
  /// Returns true if the client has ended.
  bool done() const noexcept { return done_; }
  /// Returns a violation of a rule, or an empty text. Call it after done(), some time later.
  std::string find_violation() const;
  std::size_t answered() const noexcept { return answered_; }
  /// Returns the number of requests that have failed.
  std::size_t failed() const noexcept { return failed_; }
  /// Returns the number of processes that have begun.
  unsigned begun() const noexcept { return begun_; }

 private:
  struct Sent {
    std::string id;
    std::string target;
    std::string body;
    std::string expected;
    bool posts = false;
    bool drops = false;  // the response before its end
  };

  sim::Host& next_host();
  void start_next();
  void restart();
  void plan_restart();
  void wait_for_drain(sim::Host& ending);
  int serve(loop::Platform& host);
  Task<> send_requests(http::Client& client, unsigned worker);
  Task<> send(http::Client& client, std::string name);
  Sent draw(std::string_view name);
  void judge_error(const Sent& sent, std::error_code error);
  void fail_with(std::string_view what, std::string_view target);

  sim::World& world_;
  sim::Random& random_;
  Http2RestartScenarioOptions options_;
  sim::Host* first_ = nullptr;
  sim::Host* current_ = nullptr;
  unsigned begun_ = 0;
  std::map<std::string, unsigned, std::less<>> executions_;  // of each request
  std::size_t answered_ = 0;
  std::size_t failed_ = 0;
  bool done_ = false;
  std::string violation_;
};

}  // namespace weir::simulate
