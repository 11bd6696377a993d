// The checks of certificates, of addresses to listen on and of the configuration of DNS.
#include "weir/doctor/detail/examination.hpp"

#include <cerrno>
#include <utility>

#include "weir/doctor/detail/shell_word.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/files.hpp"
#include "weir/task/context.hpp"

namespace weir::doctor {
namespace {

/// Returns the longer unit of a duration: "3 days" or "5 hours".
std::string in_words(Duration duration) {
  const auto days = std::chrono::duration_cast<std::chrono::days>(duration).count();
  const auto hours = std::chrono::duration_cast<std::chrono::hours>(duration).count();
  const auto count = days > 0 ? days : hours;
  return std::to_string(count) + (days > 0 ? " day" : " hour") + (count == 1 ? "" : "s");
}

checks::Finding certificate(checks::Severity severity, const std::string& path,
                            const std::string& fault) {
  return {.check = "certificate", .severity = severity, .found = path + ": " + fault};
}

}  // namespace

Examination::Examination(const DoctorOptions& options, const checks::MachineFacts& facts)
    : options_(options),
      facts_(facts),
      resolver_({.hosts_file = options.root + "/etc/hosts",
                 .resolv_conf = options.root + "/etc/resolv.conf"}) {}

Task<> Examination::run() {
  const Context context = co_await this_context();
  for (const tls::IdentityFiles& each : options_.certificates) co_await check_certificate(each);
  if (!options_.running) {
    for (const Endpoint& each : options_.demands.endpoints) {
      check_address(context.loop->platform(), each);
    }
  }
  const auto body = [this](Scope& scope) { return check_names_and_stores(scope); };
  std::ignore = co_await with_scope(OnFailure::isolate, body);
}

Task<> Examination::check_certificate(tls::IdentityFiles files) {
  const Context context = co_await this_context();
  ++report_.checks;
  std::string texts[2];
  const std::string* const paths[] = {&files.chain, &files.key};
  for (std::size_t index = 0; index < 2; ++index) {
    std::string path = options_.root + *paths[index];
    auto text = co_await files::read_file(std::move(path));
    if (!text) {
      checks::Finding finding =
          certificate(checks::Severity::fatal, *paths[index], text.error().message());
      finding.wanted = "a file that this user may read";
      finding.consequence = "the service cannot serve HTTPS";
      finding.remedy = "ls -l " + shell_word(*paths[index]);
      add(std::move(finding));
      co_return;
    }
    texts[index] = std::move(*text);
  }
  const auto identity = tls::Identity::from_pem(texts[0], texts[1]);
  if (!identity) {
    checks::Finding finding =
        certificate(checks::Severity::fatal, files.chain, identity.error().text());
    finding.wanted = "a chain in PEM and the key of its first certificate";
    finding.consequence = "the service cannot serve HTTPS";
    finding.remedy = "compare: openssl x509 -noout -pubkey -in " + shell_word(files.chain) +
                     "; openssl pkey -pubout -in " + shell_word(files.key);
    add(std::move(finding));
    co_return;
  }
  check_dates(files.chain, *identity, context.loop->platform().wall_time());
}

void Examination::check_dates(const std::string& path, const tls::Identity& identity,
                              WallTime now) {
  const Duration left = identity.not_after() - now;
  const Duration until = identity.not_before() - now;
  checks::Finding finding;
  if (left <= Duration::zero()) {
    finding = certificate(checks::Severity::fatal, path, "expired " + in_words(-left) + " ago");
    finding.consequence = "clients refuse the certificate";
  } else if (until > Duration::zero()) {
    finding =
        certificate(checks::Severity::fatal, path, "not valid for another " + in_words(until));
    finding.consequence = "clients refuse the certificate";
  } else if (left < options_.certificate_warning) {
    finding = certificate(checks::Severity::limits, path, "expires in " + in_words(left));
    finding.consequence = "clients will refuse the certificate then";
  } else {
    return;
  }
  finding.wanted = "a valid certificate";
  finding.remedy = "renew it; openssl x509 -noout -dates -in " + shell_word(path);
  add(std::move(finding));
}

void Examination::check_address(loop::PlatformNetwork& network, const Endpoint& endpoint) {
  if (!endpoint.is_inet() || endpoint.port() == 0) return;
  ++report_.checks;
  const auto listener = network.listen(endpoint, {.reuse_port = false, .require_unused = true});
  if (listener) return;
  const std::error_code error = listener.error();
  // The checks of the machine name these two faults.
  const bool ipv6 = endpoint.family() == os::AddressFamily::ipv6;
  if (error == system_error(EACCES) || (ipv6 && !facts_.ipv6.value_or(true))) return;
  const std::string port = std::to_string(endpoint.port());
  const bool used = error == system_error(EADDRINUSE);
  add({.check = "address",
       .severity = checks::Severity::fatal,
       .found = endpoint.to_string() + ": " + (used ? "in use" : error.message()),
       .wanted = "an address that the service can listen on",
       .consequence = "the service cannot start",
       .remedy = used ? "ss -ltnp 'sport = :" + port + "' shows the program" : "ip address"});
}

Task<> Examination::check_dns(std::vector<std::string> names) {
  ++report_.checks;
  const std::string path = "/etc/resolv.conf";
  std::string real_path = options_.root + path;
  const auto text = co_await files::read_file(std::move(real_path));
  if (!text) {
    add({.check = "name_servers",
         .severity = checks::Severity::limits,
         .found = path + ": " + text.error().message(),
         .wanted = "name servers for " + names.front(),
         .consequence = "names are asked of 127.0.0.1 only",
         .remedy = "echo nameserver ADDRESS > " + path});
    co_return;
  }
  const auto conf = dns::ResolvConf::parse(*text);
  if (conf.search.empty() || conf.ndots < 2) co_return;
  for (const std::string& each : names) {
    const auto dots = static_cast<unsigned>(std::ranges::count(each, '.'));
    if (each.ends_with('.') || dots >= conf.ndots) continue;
    add({.check = "search_domains",
         .severity = checks::Severity::limits,
         .found = "ndots:" + std::to_string(conf.ndots) + " and " +
                  std::to_string(conf.search.size()) + " search domains in " + path,
         .wanted = "one look-up for " + each,
         .consequence = std::to_string(conf.search.size()) + " look-ups that fail come first",
         .remedy = "a dot at the end of the name, or dnsConfig with ndots 1 in its pod"});
    co_return;
  }
}

}  // namespace weir::doctor
