// Parses any bytes as the answer of a name server, as /etc/hosts, as /etc/resolv.conf and as a
// name. Accepted results keep their promises.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/net/dns/detail/dns_message.hpp"
#include "weir/net/dns/detail/host_name.hpp"
#include "weir/net/dns/detail/system_dns_config.hpp"

namespace {

using weir::fuzz::require;
using namespace weir::dns;
namespace dns = weir::dns;

void check_name(std::string_view text) {
  const auto name = parse_host_name(text);
  if (!name) return;
  require(!name->text.empty() && name->text.size() <= 253);
  require(name->text.size() + (name->absolute ? 1 : 0) == text.size());
  require(name->text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_.") ==
          std::string::npos);
  require(!parse_ip_address(text, 0));
  const auto again = parse_host_name(name->text);
  require(again && again->text == name->text && !again->absolute);
  const dns::Query query(name->text, dns::RecordType::a, 1);
  require(query.name().size() == name->text.size() + 2);
}

/// Parses `rest` as the part of a response that follows the question, with a header that fits it.
void check_answer(std::uint8_t kind, std::string_view rest) {
  if (rest.size() < 7) return;
  const auto type = kind % 2 == 0 ? dns::RecordType::a : dns::RecordType::aaaa;
  const dns::Query query("www.example.org", type, 0x1234);
  std::string message(weir::to_text(query.bytes()));
  message[2] = '\x81';
  std::copy_n(rest.begin(), 7, message.begin() + 3);  // the code and the record counts
  message[4] = '\0';
  message[5] = '\1';
  message[6] = static_cast<char>(rest[3] & 1);  // at most 256 more records
  message[8] = static_cast<char>(rest[5] & 1);
  message.append(rest.substr(7));
  const weir::fuzz::ExactCopy exact(message);
  const weir::Bytes bytes = weir::to_bytes(exact.view());
  require(dns::is_response_to(bytes, query));
  constexpr std::size_t most = 3;
  const auto answer = dns::parse_response(bytes, query, most);
  if (!answer) return;
  require(answer->addresses.size() <= most);
  const bool ipv4 = type == dns::RecordType::a;
  for (const weir::Endpoint& each : answer->addresses) {
    require((each.family() == weir::os::AddressFamily::ipv4) == ipv4 && each.port() == 0);
  }
  if (!answer->addresses.empty()) require(answer->lifetime.has_value() && !answer->truncated);
  if (answer->lifetime) require(*answer->lifetime >= weir::Duration::zero());
}

void check_any_message(std::string_view text) {
  const dns::Query query("a", dns::RecordType::aaaa, 0x4141);
  const weir::fuzz::ExactCopy exact(text);
  const weir::Bytes bytes = weir::to_bytes(exact.view());
  if (dns::is_response_to(bytes, query)) static_cast<void>(dns::parse_response(bytes, query, 8));
}

void check_conf(std::string_view text) {
  const ResolvConf conf = ResolvConf::parse(text);
  require(!conf.servers.empty() && conf.servers.size() <= ResolvConf::servers_max);
  require(conf.search.size() <= ResolvConf::search_max && conf.ndots <= ResolvConf::ndots_max);
  require(conf.attempts >= 1 && conf.attempts <= ResolvConf::attempts_max);
  require(conf.timeout > weir::Duration::zero());
  for (const std::string& domain : conf.search) require(parse_host_name(domain).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
    case 1:
      check_answer(data[0] % 6, text);
      break;
    case 2:
      check_any_message(text);
      break;
    case 3: {
      const weir::fuzz::ExactCopy exact(text);
      require(HostsFile::parse(exact.view()).names() <= size);
      break;
    }
    case 4: {
      const weir::fuzz::ExactCopy exact(text);
      check_conf(exact.view());
      break;
    }
    default: {
      const weir::fuzz::ExactCopy exact(text);
      check_name(exact.view());
    }
  }
  return 0;
}
