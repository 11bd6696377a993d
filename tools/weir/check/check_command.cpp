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
#include "tools/weir/check/neighbourhood.hpp"
#include "tools/weir/check/probe.hpp"
#include "tools/weir/option_limits.hpp"
#include "tools/weir/url.hpp"
#include "weir/http/syntax/uri.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/os/os_platform.hpp"
#include "weir/task/detail/run.hpp"

namespace weir::check {
namespace {

constexpr std::size_t at_once_max = 256;

struct Command {
  std::string url;
  std::string path;
  std::string post_path;
  std::vector<std::string> only;
  std::vector<std::string> skip;
  double timeout_seconds = 5;
  double slow_seconds = 20;
  std::optional<double> idle_seconds;
  std::size_t at_once = 16;
  bool yes_remote = false;
  bool lenient = false;
  bool list = false;
  bool all = false;
  bool json = false;
};

void add_options(CLI::App& verb, Command& command) {
  verb.add_option("url", command.url, "http://host[:port][/path]; the path answers a GET with 2xx");
  verb.add_option("--path", command.path, "another path for the GETs than the URL's");
  verb.add_option("--post-path", command.post_path,
                  "a path that reads the body of a POST (default: the same path)");
  verb.add_option("--only", command.only, "a case or a category, any number of times")
      ->allow_extra_args(false);
  verb.add_option("--skip", command.skip, "one to leave out, any number of times")
      ->allow_extra_args(false);
  verb.add_flag("--list", command.list, "print the cases and play none");
  verb.add_flag("--lenient", command.lenient,
                "what the RFC lets a server do passes, though a strict one would refuse it");
  verb.add_option("--timeout", command.timeout_seconds, "seconds to wait for an answer")
      ->check(number(0.05, 1e6))
      ->capture_default_str();
  verb.add_option("--slow-deadline", command.slow_seconds,
                  "seconds after which a slow client must be cut off")
      ->check(number(0.05, 1e6))
      ->capture_default_str();
  verb.add_option("--idle-deadline", command.idle_seconds,
                  "seconds after which a silent one must be (default: none must, 20 s are tried)")
      ->check(number(0.05, 1e6));
  verb.add_option("--at-once", command.at_once, "cases at once, beside the slow ones")
      ->check(whole(1, at_once_max))
      ->capture_default_str();
  verb.add_flag("--yes-remote", command.yes_remote,
                "also servers that are neither here nor in a private network: only your own");
  verb.add_flag("--all", command.all, "print the cases that passed too");
  verb.add_flag("--json", command.json, "print one JSON object");
}

int misused(const std::string& what) {
  std::fprintf(stderr, "weir check: %s\n", what.c_str());
  return 2;
}

Duration duration_of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

/// The cases that are asked for; what is wrong with the selectors, if anything, in `wrong`.
std::vector<const Case*> selected(const CaseBook& book, const Command& command,
                                  std::string& wrong) {
  const auto names = [&book](const std::string& selector) {
    return std::ranges::any_of(book.cases(),
                               [&](const Case& each) { return is_selected(each, selector); });
  };
  for (const auto* const list : {&command.only, &command.skip}) {
    for (const std::string& each : *list) {
      if (!names(each)) wrong = "there is no case or category '" + each + "' (see --list)";
    }
  }
  std::vector<const Case*> chosen;
  for (const Case& each : book.cases()) {
    const auto by = [&each](const std::string& selector) { return is_selected(each, selector); };
    const bool wanted = command.only.empty() || std::ranges::any_of(command.only, by);
    if (wanted && std::ranges::none_of(command.skip, by)) chosen.push_back(&each);
  }
  if (wrong.empty() && chosen.empty()) wrong = "no case is left";
  return chosen;
}

bool is_path(const std::string& path) {
  http::Target parts;
  return http::parse_target(http::Method::get, path, parts) == http::Refusal::none &&
         parts.form == http::TargetForm::origin;
}

/// Fills in the site and where it may be; an empty text, or what is wrong.
std::string find_site(const Command& command, Site& site, std::vector<Endpoint>& endpoints) {
  if (command.url.empty()) return "a URL is needed";
  const auto target = bench::parse_target(command.url);
  if (!target && target.error() == Errc::unsupported) return "only http:// can be checked";
  if (!target) return "not a URL of a server: '" + command.url + "'";
  auto resolved = bench::resolve(*target);
  if (!resolved) return "no address for '" + target->host + "'";
  endpoints = std::move(*resolved);
  if (!command.yes_remote && !std::ranges::all_of(endpoints, is_near)) {
    return "'" + target->host +
           "' is neither this machine nor in a private network: these cases are attacks. "
           "--yes-remote if it is yours";
  }
  site.authority = target->authority;
  site.path = command.path.empty() ? target->resource : command.path;
  site.post_path = command.post_path.empty() ? site.path : command.post_path;
  for (const std::string& path : {site.path, site.post_path}) {
    if (!is_path(path)) return "no path: '" + path + "'";
  }
  site.timeout = duration_of(command.timeout_seconds);
  site.slow_deadline = duration_of(command.slow_seconds);
  site.idle_must_end = command.idle_seconds.has_value();
  if (command.idle_seconds) site.idle_deadline = duration_of(*command.idle_seconds);
  site.lenient = command.lenient;
  return {};
}

int run(const Command& command) {
  const CaseBook book;
  std::string wrong;
  CheckPlan plan;
  plan.cases = selected(book, command, wrong);
  if (!wrong.empty()) return misused(wrong);
  if (command.list) {
    std::fputs(to_list(plan.cases).c_str(), stdout);
    return 0;
  }
  std::vector<Endpoint> endpoints;
  wrong = find_site(command, plan.site, endpoints);
  if (!wrong.empty()) return misused(wrong);
  plan.at_once = command.at_once;

  OsHost host;
  const auto loop = Loop::make(host, {});
  if (!loop) return misused("no event loop: " + loop.error().message());
  // One that a name stands for may be nobody's: localhost is ::1 first, for servers of IPv4 too.
  plan.site.endpoint = weir::run(**loop, bench::first_reachable(std::move(endpoints)));
  const std::string trouble = weir::run(**loop, find_baseline(plan.site));
  if (!trouble.empty()) return misused(plan.site.endpoint.to_string() + " answers: " + trouble);
  if (plan.site.get.status < 200 || plan.site.get.status > 299) {
    return misused("GET " + plan.site.path + " answers " + std::to_string(plan.site.get.status) +
                   "; --path names one that answers 2xx");
  }
  const CheckReport report = weir::run(**loop, run_checks(std::move(plan)));
  const ReportOptions options{command.url, command.all};
  std::fputs((command.json ? to_json(report, options) : to_text(report, options)).c_str(), stdout);
  return report.count(VerdictKind::failed) == 0 ? 0 : 1;
}

}  // namespace

void add_command(CLI::App& tool, int& status) {
  auto command = std::make_shared<Command>();
  CLI::App* verb = tool.add_subcommand(
      "check", "play protocol errors and slow clients against an HTTP server of yours");
  add_options(*verb, *command);
  verb->callback([command, &status] { status = run(*command); });
}

}  // namespace weir::check
