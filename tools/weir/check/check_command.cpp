// The verb `weir check`: options, target and exit status.
#include "tools/weir/check/check_command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/check_report.hpp"
#include "tools/weir/check/check_run.hpp"
#include "tools/weir/check/private_networks.hpp"
#include "tools/weir/check/probe.hpp"
#include "tools/weir/option_limits.hpp"
#include "tools/weir/process_cpu_time.hpp"
#include "tools/weir/process_memory.hpp"
#include "tools/weir/url.hpp"
#include "weir/http/syntax/uri.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/task/detail/run.hpp"
#include "weir/tls/client.hpp"

namespace weir::check {
namespace {

constexpr std::size_t concurrency_max = 256;
// Largest number of handshakes at the same time. Each case needs at most one at a time.
constexpr std::size_t handshakes_max = 2 * concurrency_max;

struct Command {
  std::string url;
  std::string path;
  std::string post_path;
  std::string websocket_path;
  std::string echo_path;
  std::string ca_file;
  std::vector<std::string> headers;
  std::vector<std::string> only;
  std::vector<std::string> skip;
  double timeout_seconds = 5;
  double slow_seconds = 20;
  std::optional<double> idle_seconds;
  std::size_t concurrency = 16;
  std::vector<int> server_processes;
  std::size_t memory_mebibytes = 32;
  std::size_t latency_milliseconds = 200;
  bool allow_remote = false;
  bool lenient = false;
  bool list = false;
  bool all = false;
  bool json = false;
};

void add_options(CLI::App& verb, Command& command) {
  verb.add_option("url", command.url,
                  "http[s]://host[:port][/path]; the path answers a GET with 2xx");
  verb.add_option("--path", command.path,
                  "the path of GET requests (default: the path of the URL)");
  verb.add_option("--post-path", command.post_path,
                  "a path that reads the body of a POST (default: the same path)");
  verb.add_option("--websocket-path", command.websocket_path,
                  "a path that opens a WebSocket (default: the cases about WebSockets do not run)");
  verb.add_option("--echo-path", command.echo_path,
                  "a path that answers any method with the body of the request (default: the cases "
                  "about bodies do not run)");
  verb.add_option("--cacert", command.ca_file,
                  "verify the server's certificate with the CAs of this PEM file (default: the "
                  "certificate is not verified)");
  verb.add_option("--header", command.headers,
                  "a header of the cases about contents, such as 'Authorization: Bearer x'; may be "
                  "repeated")
      ->allow_extra_args(false);
  verb.add_option("--only", command.only, "run this case or category; may be repeated")
      ->allow_extra_args(false);
  verb.add_option("--skip", command.skip, "leave out this case or category; may be repeated")
      ->allow_extra_args(false);
  verb.add_flag("--list", command.list, "print the cases and run none");
  verb.add_flag("--lenient", command.lenient,
                "accept behaviour that the RFC allows, even if a strict server avoids it");
  verb.add_option("--timeout", command.timeout_seconds, "seconds to wait for an answer")
      ->check(number(0.05, 1e6))
      ->capture_default_str();
  verb.add_option("--slow-timeout", command.slow_seconds,
                  "seconds after which a slow client must be cut off")
      ->check(number(0.05, 1e6))
      ->capture_default_str();
  verb.add_option(
          "--idle-timeout", command.idle_seconds,
          "seconds after which a silent client must be cut off (default: no verdict after 20 "
          "s)")
      ->check(number(0.05, 1e6));
  verb.add_option("--concurrency", command.concurrency,
                  "concurrent cases, not counting the slow ones")
      ->check(whole_number(1, concurrency_max))
      ->capture_default_str();
  verb.add_option("--server-pid", command.server_processes,
                  "id of a local process of the server, whose memory and processor time are "
                  "measured; may be repeated")
      ->allow_extra_args(false);
  verb.add_option("--memory-max", command.memory_mebibytes,
                  "MiB that an attack on one connection may make the server hold")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  verb.add_option("--latency-max", command.latency_milliseconds,
                  "milliseconds by which an attack may delay the answers to others")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  verb.add_flag("--allow-remote", command.allow_remote,
                "accept a server that is neither local nor in a private network: only your own");
  verb.add_flag("--all", command.all, "print the cases that passed too");
  verb.add_flag("--json", command.json, "print one JSON object");
}

int usage_error(const std::string& what) {
  std::fprintf(stderr, "weir check: %s\n", what.c_str());
  return 2;
}

Duration duration_of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

/// Returns the selected cases. `error` gets a description if a selector is wrong.
std::vector<const Case*> selected(const CaseRegistry& registry, const Command& command,
                                  std::string& error) {
  const auto names = [&registry](const std::string& selector) {
    return std::ranges::any_of(registry.cases(),
                               [&](const Case& each) { return is_selected(each, selector); });
  };
  for (const auto* const list : {&command.only, &command.skip}) {
    for (const std::string& each : *list) {
      if (!names(each)) error = "there is no case or category '" + each + "' (see --list)";
    }
  }
  std::vector<const Case*> chosen;
  for (const Case& each : registry.cases()) {
    const auto by = [&each](const std::string& selector) { return is_selected(each, selector); };
    const bool wanted = command.only.empty() || std::ranges::any_of(command.only, by);
    if (wanted && std::ranges::none_of(command.skip, by)) chosen.push_back(&each);
  }
  if (error.empty() && chosen.empty()) error = "--only and --skip leave no case";
  return chosen;
}

bool is_path(const std::string& path) {
  http::Target parts;
  return http::parse_target(http::Method::get, path, parts) == http::ParseError::none &&
         parts.form == http::TargetForm::origin;
}

/// Fills in `target` and its addresses.
/// Returns: empty, or a description of the error.
std::string resolve_target(const Command& command, CheckTarget& target,
                           std::vector<Endpoint>& endpoints) {
  if (command.url.empty()) return "the URL is missing";
  const auto url = bench::parse_url(command.url);
  if (!url && url.error() == Errc::unsupported) return "only http:// and https:// can be checked";
  if (!url) return "not a URL of a server: '" + command.url + "'";
  auto resolved = bench::resolve(*url);
  if (!resolved) return "no address for '" + url->host + "'";
  endpoints = std::move(*resolved);
  if (!command.allow_remote && !std::ranges::all_of(endpoints, is_local_or_private)) {
    return "'" + url->host +
           "' is neither this machine nor in a private network (the cases are attacks; use "
           "--allow-remote for your own server)";
  }
  if (!url->secure && !command.ca_file.empty()) return "--cacert requires https://";
  target.authority = url->authority;
  target.host = url->host;
  target.path = command.path.empty() ? url->path_and_query : command.path;
  target.post_path = command.post_path.empty() ? target.path : command.post_path;
  target.websocket_path = command.websocket_path;
  target.echo_path = command.echo_path;
  for (const std::string& path :
       {target.path, target.post_path, target.websocket_path, target.echo_path}) {
    if (!path.empty() && !is_path(path)) return "not a path: '" + path + "'";
  }
  for (const std::string& each : command.headers) {
    const std::size_t colon = each.find(": ");
    if (colon == each.npos || !http::is_valid_header(each.substr(0, colon), each.substr(colon + 2)))
      return "not a header: '" + each + "'";
    target.headers += each + "\r\n";
  }
  target.timeout = duration_of(command.timeout_seconds);
  target.slow_timeout = duration_of(command.slow_seconds);
  target.idle_must_close = command.idle_seconds.has_value();
  if (command.idle_seconds) target.idle_timeout = duration_of(*command.idle_seconds);
  target.lenient = command.lenient;
  target.memory_max = std::uint64_t{command.memory_mebibytes} << 20U;
  target.latency_max = std::chrono::milliseconds(command.latency_milliseconds);
  if (command.server_processes.empty()) return {};
  if (!bench::process_memory(command.server_processes)) {
    return "--server-pid: there is no such process";
  }
  target.memory = [processes = command.server_processes]() -> std::optional<std::uint64_t> {
    const auto memory = bench::process_memory(processes);
    return memory ? std::optional(*memory) : std::nullopt;
  };
  target.processor_time = [processes = command.server_processes]() -> std::optional<Duration> {
    const auto time = bench::process_cpu_time(processes);
    return time ? std::optional(*time) : std::nullopt;
  };
  return {};
}

/// Leaves out the cases that need what the command line does not name.
/// Returns: empty, or what it must name if no case is left.
std::string leave_out_cases(CheckPlan& plan, bool secure) {
  struct Need {
    std::string_view category;
    bool met;
    std::string_view message;
  };
  const Need needs[] = {
      {"tls", secure, "the cases about TLS require https://"},
      {"websocket", !plan.target.websocket_path.empty(),
       "the cases about WebSockets require --websocket-path"},
      {"bodies", !plan.target.echo_path.empty(), "the cases about bodies require --echo-path"},
  };
  for (const Need& need : needs) {
    if (need.met) continue;
    std::erase_if(plan.cases, [&](const Case* each) { return is_selected(*each, need.category); });
    if (plan.cases.empty()) return std::string(need.message);
  }
  return {};
}

tls::ClientOptions tls_options(const Command& command) {
  tls::ClientOptions options;
  options.trust = {};
  options.verification = tls::Verification::none;
  if (!command.ca_file.empty()) {
    options.trust.files.push_back(command.ca_file);
    options.verification = tls::Verification::full;
  }
  options.tickets = false;  // each case has a full handshake
  options.limits.timeout = duration_of(command.timeout_seconds);
  options.limits.concurrency_max = handshakes_max;
  return options;
}

int run(const Command& command) {
  const CaseRegistry registry;
  std::string error;
  CheckPlan plan;
  plan.cases = selected(registry, command, error);
  if (!error.empty()) return usage_error(error);
  if (command.list) {
    std::fputs(to_list(plan.cases).c_str(), stdout);
    return 0;
  }
  std::vector<Endpoint> endpoints;
  error = resolve_target(command, plan.target, endpoints);
  if (!error.empty()) return usage_error(error);
  const bool secure = bench::parse_url(command.url)->secure;
  error = leave_out_cases(plan, secure);
  if (!error.empty()) return usage_error(error);
  plan.concurrency = command.concurrency;

  OsPlatform platform;
  const auto loop = Loop::make(platform, {});
  if (!loop) return usage_error("no event loop: " + loop.error().message());
  tls::Client client(tls_options(command));
  tls::Connector connector(**loop, client);
  tls::ClientOptions http2_options = tls_options(command);
  http2_options.protocols = {"h2", "http/1.1"};
  tls::Client http2_client(std::move(http2_options));
  tls::Connector http2_connector(**loop, http2_client);
  if (secure) plan.target.tls = &connector;
  if (secure) plan.target.tls_http2 = &http2_connector;
  // The first address of a name may have no server: localhost is ::1 first, also for servers of
  // IPv4.
  plan.target.endpoint = weir::run(**loop, bench::first_reachable(std::move(endpoints)));
  const std::string trouble = weir::run(**loop, find_baseline(plan.target));
  if (!trouble.empty()) return usage_error(plan.target.endpoint.to_string() + ": " + trouble);
  const auto is_of_http1 = [](const Case* each) { return each->rule->name != "http2"; };
  if (plan.target.http2_only && std::ranges::any_of(plan.cases, is_of_http1)) {
    return usage_error(command.url + " answers only HTTP/2 (use --only http2)");
  }
  if (plan.target.get.status < 200 || plan.target.get.status > 299) {
    return usage_error("GET " + plan.target.path + " answers " +
                       std::to_string(plan.target.get.status) +
                       " (use --path for a path that answers 2xx)");
  }
  const CheckReport report = weir::run(**loop, run_checks(std::move(plan)));
  const ReportOptions options{
      .url = command.url, .verified = !command.ca_file.empty(), .all = command.all};
  std::fputs((command.json ? to_json(report, options) : to_text(report, options)).c_str(), stdout);
  return report.count(VerdictKind::failed) == 0 ? 0 : 1;
}

}  // namespace

void add_command(CLI::App& tool, int& status) {
  auto command = std::make_shared<Command>();
  CLI::App* verb = tool.add_subcommand(
      "check", "run protocol errors and slow clients against an HTTP server of yours");
  add_options(*verb, *command);
  verb->callback([command, &status] { status = run(*command); });
}

}  // namespace weir::check
