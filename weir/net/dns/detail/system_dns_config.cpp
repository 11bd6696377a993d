#include "weir/net/dns/detail/system_dns_config.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "weir/net/dns/detail/host_name.hpp"
#include "weir/runtime/pool/detail/shared_pool.hpp"

namespace weir::dns {
namespace {

constexpr std::size_t file_bytes_max = 16 * 1024 * 1024;

bool same(const files::Status& left, const files::Status& right) noexcept {
  return left.size == right.size && left.modified == right.modified;
}

/// Returns true if a later change may leave the modification time unchanged, because file systems
/// have coarse clocks.
bool may_change_unnoticed(const files::Status& status, WallTime now) noexcept {
  constexpr Duration coarsest = std::chrono::seconds(2);
  return status.modified > now - coarsest;
}

}  // namespace

Task<std::optional<std::string>> SystemDnsConfig::read_changed(WatchedFile& file) {
  if (file.path.empty()) co_return std::nullopt;
  const Context context = co_await this_context();
  const auto status = co_await files::status(file.path);
  if (status && file.seen && same(*status, *file.seen)) co_return std::nullopt;
  const WallTime now = context.loop->platform().wall_time();
  Result<std::string> text;
  if (!status) {
    text = fail(status.error());
  } else if (status->size <= file_bytes_max) {
    text = co_await files::read_file(file.path, file_bytes_max);
  }
  const bool missing = !text && text.error() == system_error(ENOENT);
  if (!text && !missing) co_return std::nullopt;
  file.seen.reset();
  if (missing) co_return std::string();
  if (!may_change_unnoticed(*status, now)) file.seen = *status;
  co_return std::move(*text);
}

/// Parses a long hosts file on another thread. Block lists make such files common.
Task<> SystemDnsConfig::parse_hosts(std::string text) {
  constexpr std::size_t bytes_at_once_max = 64 * 1024;
  if (text.size() <= bytes_at_once_max) {
    hosts_ = HostsFile::parse(text);
    co_return;
  }
  const Context context = co_await this_context();
  const auto parse = [](const std::string& long_text) { return HostsFile::parse(long_text); };
  auto parsed = co_await shared_pool(*context.loop).pool().run(parse, std::move(text));
  if (parsed) {
    hosts_ = std::move(*parsed);
  } else {
    hosts_file_.seen.reset();  // tries again later
  }
}

Task<Result<>> SystemDnsConfig::refresh() {
  const Context context = co_await this_context();
  Loop& loop = *context.loop;
  const auto fresh = [&] { return loop.now() < expires_; };
  if (fresh()) co_return {};
  WEIR_CO_TRY(const auto guard, co_await refresh_mutex_.lock());
  if (fresh()) co_return {};  // another task has read them meanwhile
  auto hosts = co_await read_changed(hosts_file_);
  if (hosts) co_await parse_hosts(std::move(*hosts));
  if (const auto conf = co_await read_changed(resolv_conf_file_)) conf_ = ResolvConf::parse(*conf);
  if (context.cancelled()) co_return fail(Errc::cancelled);
  expires_ = after(loop.now(), period);
  co_return {};
}

namespace {

/// Sets `value` from an option such as "name:7" if it has this name. Reduces it to `most`.
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

HostsFile HostsFile::parse(std::string_view text) {
  HostsFile file;
  while (!text.empty()) {
    std::string_view rest = take_line(text);
    std::string_view line = take_until(rest, "#");
    const auto address = parse_ip_address(take_field(line), 0);
    if (!address) continue;
    for (auto field = take_field(line); !field.empty(); field = take_field(line)) {
      auto name = parse_host_name(field);
      if (!name) continue;
      auto& addresses = file.addresses_[std::move(name->text)];
      if (std::ranges::find(addresses, *address) == addresses.end()) addresses.push_back(*address);
    }
  }
  return file;
}

const std::vector<Endpoint>* HostsFile::find(std::string_view name) const {
  const auto found = addresses_.find(name);
  return found == addresses_.end() ? nullptr : &found->second;
}

}  // namespace weir::dns
