#include "weir/net/resolv_conf.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "weir/net/dns/detail/host_name.hpp"
#include "weir/net/text_fields.hpp"

namespace weir::names {
namespace {

/// Sets `value` from "name:7", at most `most`, if the option is that one.
void read_option(std::string_view option, std::string_view name, unsigned most, unsigned& value) {
  if (!option.starts_with(name)) return;
  option.remove_prefix(name.size());
  if (!option.starts_with(':')) return;
  option.remove_prefix(1);
  unsigned number = 0;
  const char* const end = option.data() + option.size();
  const auto [rest, error] = std::from_chars(option.data(), end, number);
  if (rest != end || error == std::errc::invalid_argument) return;
  value = error == std::errc::result_out_of_range ? most : std::min(number, most);
}

}  // namespace

ResolvConf ResolvConf::parse(std::string_view text) {
  ResolvConf conf;
  std::vector<Endpoint> servers;
  auto timeout_seconds =
      static_cast<unsigned>(std::chrono::duration_cast<std::chrono::seconds>(conf.timeout).count());
  while (!text.empty()) {
    std::string_view rest = take_line(text);
    std::string_view line = take_until(rest, "#;");
    const std::string_view keyword = take_field(line);
    std::string_view field = take_field(line);
    if (keyword == "nameserver") {
      const auto server = parse_ip_address(field, name_server_port);
      if (server && servers.size() < servers_max) servers.push_back(*server);
    } else if (keyword == "search" || keyword == "domain") {
      conf.search.clear();
      for (; !field.empty() && conf.search.size() < search_max; field = take_field(line)) {
        if (auto domain = parse_host_name(field)) conf.search.push_back(std::move(domain->text));
        if (keyword == "domain") break;
      }
    } else if (keyword == "options") {
      for (; !field.empty(); field = take_field(line)) {
        read_option(field, "ndots", ndots_max, conf.ndots);
        read_option(field, "timeout", timeout_seconds_max, timeout_seconds);
        read_option(field, "attempts", attempts_max, conf.attempts);
      }
    }
  }
  if (!servers.empty()) conf.servers = std::move(servers);
  conf.timeout = std::chrono::seconds(std::max(timeout_seconds, 1U));
  conf.attempts = std::max(conf.attempts, 1U);
  return conf;
}

}  // namespace weir::names
