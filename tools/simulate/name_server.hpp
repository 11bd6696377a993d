// A simulated name server that answers from a zone.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/simulate/name_zone.hpp"
#include "weir/base/result.hpp"
#include "weir/net/tcp.hpp"
#include "weir/net/udp.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sync/mutex.hpp"

namespace weir::simulate {

/// The queries that the servers of one run have received, such as "0 www.example A" or
/// "1 www.example AAAA TCP".
using QueryLog = std::vector<std::string>;

/// A NameServer answers on port 53 over UDP and TCP. Its answers contain what DNS allows: names in
/// any case, compressed or not, aliases in any order, and records of other types, classes and
/// owners. Other datagrams may arrive before an answer.
/// Threads: those of one World.
/// Lifetime: outlives the tasks of its run(); the zone and the log outlive it.
class NameServer {
 public:
  NameServer(const Zone& zone, std::size_t number, QueryLog& log)
      : zone_(zone), number_(number), log_(log) {}
  NameServer(const NameServer&) = delete;
  NameServer& operator=(const NameServer&) = delete;

  /// Serves until the loop drains.
  Task<Result<>> run(Scope&);

 private:
  struct Query {
    std::string name;  // in lower case
    dns::Family family = dns::Family::ipv6;
    std::vector<std::byte> bytes;  // header and question as sent
  };

  static Query parse(Bytes message);
  AnswerMode mode_of(const Query& query) const;
  void record(const Query& query, std::string_view transport);
  std::vector<std::byte> answer(const Query& query, AnswerMode mode, sim::Random& random) const;
  Task<> answer_datagram(loop::PlatformClock& clock, Query query, Endpoint peer);
  Task<> send(std::vector<std::byte> message, Endpoint peer);
  Task<Result<>> serve_connections(Scope& scope);
  Task<> answer_connection(loop::PlatformClock& clock, tcp::Stream stream);

  const Zone& zone_;
  std::size_t number_;
  QueryLog& log_;
  udp::Socket* socket_ = nullptr;
  Mutex sending_;
};

}  // namespace weir::simulate
