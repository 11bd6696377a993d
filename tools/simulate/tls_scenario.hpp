// Simulates an HTTPS server whose certificates and ticket keys change while clients use it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "weir/base/result.hpp"
#include "weir/loop/contract/detail/platform.hpp"
#include "weir/sim/detail/random.hpp"
#include "weir/task/scope.hpp"
#include "weir/tls/certificate/identity.hpp"
#include "weir/tls/client.hpp"
#include "weir/tls/server.hpp"

namespace weir::simulate {

struct TlsScenarioOptions {
  unsigned cores = 2;      ///< number of cores of the server
  unsigned workers = 6;    ///< number of clients that the server trusts, and that trust it
  unsigned requests = 12;  ///< number of requests of each client
  bool mutual = false;     ///< true: the server trusts only clients with a certificate
  /// True: the program sets the ticket keys. False: the server rotates its own keys, and the
  /// clients pause for hours.
  bool sets_keys = true;
  bool required = true;   ///< false: the server lets clients without a certificate in
  bool may_fail = false;  ///< true: the World injects faults, so that requests may fail
};

/// The clients send requests over HTTPS with pauses, so that they use connections again, resume
/// sessions and make new ones. The server loads its certificates again or rotates its ticket keys
/// meanwhile. Others connect too: clients that do not trust the server, clients without the
/// required certificate, clients that give up during the handshake, and peers that send anything.
/// The test requires these rules:
/// - a response is whole and belongs to its request;
/// - without faults, each request of a trusted client succeeds;
/// - without faults, a client resumes its session within the lifetime of its ticket, although the
///   server has rotated its keys;
/// - a client that does not trust the server, or that the server does not trust, gets no response;
/// - each handshake of the server ends, and is counted once.
/// Threads: those of one World.
/// Lifetime: outlives the run.
class TlsScenario {
 public:
  /// Makes the certificates, so that a World must exist.
  TlsScenario(sim::Random& random, const TlsScenarioOptions& options);

  /// Serves port 443 until the process is told to stop. It is a main function.
  const TlsScenarioOptions& options() const noexcept { return options_; }
  int serve(loop::Platform& host);
  /// Sends all requests to the host "server".
  Task<Result<>> ask(Scope& scope);

  const std::string& violation() const noexcept { return violation_; }
  std::size_t answered() const noexcept { return answered_; }
  /// Returns the number of responses on connections that resumed a session.
  std::size_t resumed() const noexcept { return resumed_; }
  /// Returns the number of successful changes of the server.
  std::size_t changes() const noexcept { return changes_; }

 private:
  Task<> change();
  Task<> send_requests(unsigned worker);
  Duration draw_pause();
  Task<> send_in_vain(std::shared_ptr<tls::Client> client);
  Task<> give_up();
  Task<> send_anything();
  void fail_with(const std::string& what);

  sim::Random* random_;
  TlsScenarioOptions options_;
  tls::Identity identity_;
  tls::Identity other_;  // no side trusts it
  std::shared_ptr<tls::Server> server_;
  std::shared_ptr<tls::Client> trusted_;
  std::size_t answered_ = 0;
  std::size_t resumed_ = 0;
  std::size_t changes_ = 0;
  std::string violation_;
};

}  // namespace weir::simulate
