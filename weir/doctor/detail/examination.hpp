// Examination: the checks of one run that need a loop. They are in several sources.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/doctor/doctor.hpp"
#include "weir/net/dns/resolver.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/task.hpp"

namespace weir::doctor {

/// A Target is the server of a URL: `host` is a name, an address or the path of a Unix socket.
struct Target {
  std::string host;
  std::uint16_t port = 0;  ///< 0: `host` is a path
  std::string shown;       ///< the URL without credentials, path and query
};

/// Parses a URL or HOST:PORT. The scheme gives the port if the URL has none.
/// Errors: Errc::bad_input.
Result<Target> parse_target(std::string_view url);

/// An Examination collects the findings of the checks that wait.
/// Threads: one loop's.
/// Lifetime: the options and the facts outlive it.
class Examination {
 public:
  Examination(const DoctorOptions& options, const checks::MachineFacts& facts);

  /// Checks certificates, addresses, the configuration of DNS, names and stores.
  /// Cancel: ends the waits; what was not checked has no finding.
  Task<> run();

  DoctorReport take_report() { return std::move(report_); }

 private:
  void add(checks::Finding finding) { report_.findings.push_back(std::move(finding)); }
  Task<> check_certificate(tls::IdentityFiles files);
  void check_dates(const std::string& path, const tls::Identity& identity, WallTime now);
  void check_address(loop::PlatformNetwork& network, const Endpoint& endpoint);
  Task<> check_dns(std::vector<std::string> names);
  Task<> check_names_and_stores(Scope& scope);
  Task<> check_name(std::string name);
  Task<> check_store(Target target);
  void add_unresolved(const std::string& name, std::error_code error);
  std::string describe(std::error_code error) const;

  const DoctorOptions& options_;
  const checks::MachineFacts& facts_;
  dns::Resolver resolver_;
  DoctorReport report_;
};

}  // namespace weir::doctor
