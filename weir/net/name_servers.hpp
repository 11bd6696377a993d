// Asking name servers: by datagrams, by a connection where an answer is too long for one, and the
// next server when one fails.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "weir/base/detail/counter.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/net/dns/detail/dns_message.hpp"
#include "weir/net/name_error.hpp"
#include "weir/os/address.hpp"
#include "weir/task/task.hpp"

namespace weir::names {

struct NameServersOptions {
  std::vector<Endpoint> servers;  ///< at least one
  Duration timeout{};             ///< for each question to one server
  unsigned attempts = 1;          ///< how often the whole list is gone through
  std::size_t addresses_max = 1;  ///< of one answer
  bool operator==(const NameServersOptions&) const = default;
};

struct NameServersCounters {
  Counter questions;    ///< sent to a server, by datagram or by connection
  Counter connections;  ///< of these: because the answer was too long for a datagram
  Counter strays;       ///< datagrams that were no answers to what was asked, and were dropped
};

/// Each question goes from a socket, and so from a port, of its own, with an id that nobody can
/// guess, and only its server can answer: what others make up is not heard or is dropped (RFC
/// 5452). The server that answered last is asked first next time, so that a dead one costs its
/// time-out once. Who says that he cannot or will not answer is not asked again by the same
/// look-up. Threads: its loop's. Lifetime: outlives every ask().
class NameServers {
 public:
  /// For what is asked from now on.
  void configure(NameServersOptions options);

  /// What the servers say of `name`, a HostName's text: code none or no_such_name. Errors: those of
  /// Failure but no_address and not_found, the most telling of what came of all attempts; the
  /// kernel's, where no socket is to be had (EMFILE …); Errc::cancelled.
  /// Cancel: returns in the loop's next round.
  Task<Result<dns::Answer>> ask(std::string name, dns::RecordType type);

  const NameServersCounters& counters() const noexcept { return counters_; }

 private:
  Task<Result<dns::Answer>> ask_one(Endpoint server, const dns::Query& query);
  Task<Result<dns::Answer>> ask_by_datagram(Endpoint server, const dns::Query& query);
  Task<Result<dns::Answer>> ask_by_connection(Endpoint server, const dns::Query& query);

  NameServersOptions options_;
  std::size_t preferred_ = 0;  // of the servers
  NameServersCounters counters_;
};

}  // namespace weir::names
