// A DNS client that queries name servers over UDP, and over TCP if a response is too long for a
// datagram. It tries the next server when one fails.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <system_error>
#include <vector>

#include "weir/base/detail/counter.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/net/dns/detail/dns_message.hpp"
#include "weir/os/address.hpp"
#include "weir/task/task.hpp"

namespace weir::dns {

// Errors of name resolution as std::error_code values.

/// Reasons for a failed name resolution. The values are stable, so that they may be logged and
/// compared as numbers. `timed_out` equals std::errc::timed_out, and `unreachable` equals
/// std::errc::host_unreachable. Name resolution also returns weir::Errc values: `bad_input` if the
/// text is no host name, `limit_reached` if there are too many look-ups, and `cancelled`.
enum class ResolveError {
  no_address = 1,     ///< existing name without an address of the requested family
  not_found = 2,      ///< no such name (NXDOMAIN)
  unreachable = 3,    ///< no name server reachable
  timed_out = 4,      ///< no response of a name server within the time limit
  malformed = 5,      ///< malformed response of a name server
  refused = 6,        ///< refusal of a name server to answer the query (REFUSED, NOTIMP)
  server_failed = 7,  ///< failure of a name server (SERVFAIL)
};
inline constexpr std::size_t resolve_error_count = 7;

/// Returns the category of ResolveError; its name is "weir.dns".
/// Threads: any.
/// Lifetime: the category lives as long as the process.
const std::error_category& resolve_error_category() noexcept;

inline std::error_code make_error_code(ResolveError error) noexcept {
  return {static_cast<int>(error), resolve_error_category()};
}

/// Returns the more specific of two errors of one operation. An error in a server's response is
/// more specific than no response, and no response is more specific than an absent name or address.
/// Errors of other categories, such as exhausted descriptors, are the most specific. Returns the
/// first if both are equally specific, and the other if one is no error.
std::error_code more_specific_error(std::error_code first, std::error_code second) noexcept;

}  // namespace weir::dns

template <>
struct std::is_error_code_enum<weir::dns::ResolveError> : std::true_type {};

namespace weir::dns {

struct DnsClientOptions {
  std::vector<Endpoint> servers;  ///< name servers, at least one
  Duration timeout{};             ///< time limit of a query to one server over UDP, then over TCP
  unsigned attempts = 1;          ///< number of passes through the list of servers
  std::size_t addresses_max = 1;  ///< maximum number of addresses in one response
  bool operator==(const DnsClientOptions&) const = default;
};

struct DnsClientCounters {
  detail::Counter queries;      ///< queries sent to a server over UDP or TCP
  detail::Counter connections;  ///< TCP queries, because the response was too long for a datagram
  detail::Counter strays;       ///< dropped datagrams that were no response to the query
};

/// A client of name servers. Each query uses its own connected socket, and so its own port, and a
/// random id. Forged responses are therefore not received or are dropped (RFC 5452). The client
/// reads at most 4096 bytes of a datagram. The server that answered last is queried first next
/// time, so that a dead server costs its timeout only once. After a timeout or a malformed
/// response, a query() asks that server again in its next pass. After any other failure (REFUSED,
/// SERVFAIL, unreachable) it does not.
/// Threads: its loop's.
/// Lifetime: outlives every query().
class DnsClient {
 public:
  /// Sets the options. A running query() keeps its list of servers and otherwise uses the new
  /// options from then on.
  void configure(DnsClientOptions options);

  /// Queries the servers for `name`, which is the text of a HostName.
  /// Returns: a response with code no_error or no_such_name.
  /// Errors: the most specific error of all attempts, and the first if several are equally
  /// specific. It is a ResolveError other than no_address and not_found, or the kernel's if no
  /// socket is available (EMFILE …); Errc::cancelled.
  /// Cancel: cancels the pending socket operation, and returns when that has ended.
  Task<Result<dns::Response>> query(std::string name, dns::RecordType type);

  const DnsClientCounters& counters() const noexcept { return counters_; }

 private:
  Task<Result<dns::Response>> query_server(Endpoint server, const dns::Query& query);
  Task<Result<dns::Response>> query_udp(Endpoint server, const dns::Query& query);
  Task<Result<dns::Response>> query_tcp(Endpoint server, const dns::Query& query);

  DnsClientOptions options_;
  std::size_t preferred_ = 0;  // index of the server that answered last
  DnsClientCounters counters_;
};

}  // namespace weir::dns
