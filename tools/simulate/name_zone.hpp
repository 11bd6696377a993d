// The names that the simulated name servers know, and how each of these servers answers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/net/dns/detail/host_name.hpp"
#include "weir/os/address.hpp"
#include "weir/sim/detail/random.hpp"

namespace weir::simulate {

/// The way in which a name server answers queries for a name.
enum class AnswerMode : std::uint8_t {
  correct,
  truncated,  ///< truncated over UDP, correct over TCP
  // The modes below give no answer.
  silent,
  strays,         ///< only datagrams that answer another query
  malformed,      ///< an answer that breaks the rules of DNS
  refused,        ///< code REFUSED or NOTIMP
  failed,         ///< code SERVFAIL or FORMERR
  tcp_cut,        ///< truncated over UDP; the TCP connection ends within the answer
  tcp_closed,     ///< truncated over UDP; the TCP connection ends before the answer
  tcp_wrong,      ///< truncated over UDP; the TCP answer has another id
  tcp_truncated,  ///< truncated over UDP and over TCP
};
inline constexpr std::size_t answer_mode_count = 11;
inline constexpr std::size_t name_servers_max = 3;

struct ZoneAddress {
  Endpoint address;  ///< address with port 0
  std::uint32_t ttl = 0;
};

struct ZoneAlias {
  std::string target;
  std::uint32_t ttl = 0;
};

/// The SOA record of an answer without addresses.
struct ZoneAbsence {
  std::uint32_t ttl = 0;
  std::uint32_t minimum = 0;
};

struct ZoneName {
  bool exists = true;              ///< false: the code is NXDOMAIN
  std::vector<ZoneAlias> aliases;  ///< chain of aliases; the last one has the addresses
  std::array<std::vector<ZoneAddress>, 2> addresses;  ///< by dns::Family
  std::optional<ZoneAbsence> absence;
  std::array<Duration, 2> delay{};  ///< delay of an answer, by dns::Family
  std::array<AnswerMode, name_servers_max> modes{};
};

/// Options of a random zone.
struct ZoneOptions {
  bool only_right_answers = false;  ///< true: all modes are correct or truncated
  std::vector<Endpoint> ipv4 = {};  ///< addresses of the names in Zone::connectable
};

/// The names and domains of one run.
struct Zone {
  /// Returns a random zone. All choices come from `random`.
  static Zone draw(sim::Random& random, const ZoneOptions& options);

  /// Returns the entry of a name in lower case; that of a name that does not exist, if unknown.
  const ZoneName& find(std::string_view name) const;

  std::map<std::string, ZoneName, std::less<>> names;
  ZoneName unknown;                      ///< entry of all other names
  std::vector<std::string> domains;      ///< domains of the names, also for searches
  std::vector<std::string> plain;        ///< names whose answers are correct in all modes
  std::vector<std::string> faulty;       ///< names that some server does not answer
  std::vector<std::string> connectable;  ///< names with the addresses of ZoneOptions::ipv4
  std::vector<std::string> stable;       ///< names with one IPv4 address, for a minute
};

inline constexpr std::array families{dns::Family::ipv6, dns::Family::ipv4};

inline std::size_t index_of(dns::Family family) noexcept {
  return static_cast<std::size_t>(family);
}

/// Returns an address that no simulated host has.
Endpoint unused_address(dns::Family family, std::size_t number);

}  // namespace weir::simulate
