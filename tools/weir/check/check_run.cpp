#include "tools/weir/check/check_run.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "tools/weir/check/probe.hpp"
#include "tools/weir/check/wire_check.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/semaphore.hpp"

namespace weir::check {
namespace {

constexpr unsigned failed_probes_max = 3;  // in a row: then nobody is there any more

struct Run {
  Run(CheckReport& into, std::size_t at_once) : report(into), permits(at_once) {}

  bool serves() const noexcept { return failed_probes < failed_probes_max; }

  CheckReport& report;
  CoreSemaphore permits;
  unsigned failed_probes = 0;
};

Task<> play(Run& run, CaseResult& result) {
  const Site& site = run.report.site;
  if (!run.serves()) {
    result.verdict = failed("the server serves on", "not run: it does not serve any more");
    co_return;
  }
  const Script script = result.of->script == nullptr ? check_wire : result.of->script;
  result.verdict = co_await script(site, *result.of);
  const std::string trouble = co_await probe(site);
  run.failed_probes = trouble.empty() ? 0 : run.failed_probes + 1;
  if (trouble.empty() || result.verdict.kind == VerdictKind::failed) co_return;
  result.verdict.kind = VerdictKind::failed;
  result.verdict.wanted = "the server serves on";
  result.verdict.came = "a GET after the case got: " + trouble;
}

Task<> play_in_turn(Run& run, CaseResult& result) {
  const auto permit = co_await run.permits.acquire();
  if (permit) co_await play(run, result);
}

Task<> play_all(Scope& scope, Run& run) {
  for (CaseResult& each : run.report.results) {
    const bool slow = each.of->rule->name == "slow";
    scope.spawn(slow ? play(run, each) : play_in_turn(run, each));
  }
  co_return;
}

}  // namespace

std::size_t CheckReport::count(VerdictKind kind) const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count(results, kind, [](const CaseResult& each) { return each.verdict.kind; }));
}

Task<CheckReport> run_checks(CheckPlan plan) {
  const Context context = co_await this_context();
  CheckReport report;
  report.site = std::move(plan.site);
  for (const Case* each : plan.cases) {
    CaseResult& result = report.results.emplace_back();
    result.of = each;
    result.verdict = failed("a verdict", "not run");
  }
  const Instant start = context.loop->host().now();
  Run run(report, plan.at_once);
  const auto played = co_await with_scope(OnFailure::supervise, play_all, std::ref(run));
  static_cast<void>(played);
  report.took = context.loop->host().now() - start;
  co_return report;
}

}  // namespace weir::check
