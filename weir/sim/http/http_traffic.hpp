// Clients that ask a server for all kinds of things, pipelined, and judge what it answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/net/stream.hpp"
#include "weir/os/address.hpp"
#include "weir/task/scope.hpp"
#include "weir/testing/http_answers.hpp"
#include "weir/testing/http_asked.hpp"

namespace weir {

struct HttpTrafficOptions {
  Endpoint server;
  std::size_t connections = 6;
  std::size_t requests_max = 10;  ///< on each connection
};

/// One connection: what it asks, how it behaves, and what came of it.
struct HttpTalk {
  enum class Leaving : std::uint8_t {
    when_answered,
    listens_on,   ///< the same, but waits whether anything else comes
    half_closes,  ///< tells that nothing more comes, and waits for the answers and the end
    early,        ///< closes before all answers are there
  };
  WorldDraw draw{0};  ///< for all its choices
  std::vector<HttpAsked> asked;
  std::string text;  ///< all requests
  Leaving leaving = Leaving::when_answered;
  std::size_t leaves_after = 0;  ///< bytes of answers, when early

  Instant begun = never;  ///< to connect
  Instant over = never;
  bool connected = false;
  Endpoint local;  ///< then: this side
  std::string received;
  std::error_code ended;        ///< why reading has ended; none: it was done
  bool waited_in_vain = false;  ///< nothing came, and no end either

  /// To its requests, interim ones left out; the last one may be cut.
  std::vector<HttpAnswer> answers() const;
};

/// What the test has done to a connection, or let its server do.
enum class HttpExcuse : std::uint8_t {
  none,         ///< every request must be answered
  ended_early,  ///< it may close at any time; its last answer may be an error instead
  failed_once,  ///< the same; or one request may be answered by 500
};

/// For a server that has the resources which HttpAsked names. What all its clients see must hold:
/// each request is answered, and once; answers come in the order of the requests; none is cut. Who
/// has an excuse may see its connection close, and then one answer cut.
/// Threads: those of one World. Lifetime: outlives what run() spawns.
class HttpTraffic {
 public:
  explicit HttpTraffic(const HttpTrafficOptions& options) : options_(options) {}
  HttpTraffic(const HttpTraffic&) = delete;
  HttpTraffic& operator=(const HttpTraffic&) = delete;

  /// The body of a client, for Runtime::run_on_each_core(): opens the connections at moments that
  /// the host draws, and returns when all are over.
  /// Cancel: closes them.
  Task<> run(Scope& scope);

  /// What did not hold, for World::check(); empty if all did. `excuse_of` is asked, once the World
  /// has been run, for each connection on which something did not that holds without an excuse.
  std::string find_fault(const std::function<HttpExcuse(const HttpTalk&)>& excuse_of = {}) const;
  /// On the connection that has this address here: where the first `requests` requests end, in
  /// bytes of what it sends. 0 if it has asked nothing.
  std::size_t end_of(const Endpoint& local, std::size_t requests) const;
  /// Whole answers that came.
  std::size_t answered() const;

 private:
  HttpTalk& plan(std::uint64_t seed);
  Task<> converse(HttpTalk& talk);
  Task<Result<>> ask(HttpTalk& talk, Stream& stream);
  Task<Result<>> listen(HttpTalk& talk, Stream& stream);
  Task<Result<>> listen_on(HttpTalk& talk, Stream& stream);

  HttpTrafficOptions options_;
  std::deque<HttpTalk> talks_;
};

}  // namespace weir
