// Runs the cases of a check concurrently, with a probe after each case.
#include "tools/weir/check/check_run.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "tools/weir/check/probe.hpp"
#include "tools/weir/check/wire_check.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sync/semaphore.hpp"

namespace weir::check {
namespace {

// consecutive failures; the server is then considered dead
constexpr unsigned failed_probes_max = 3;

struct Run {
  Run(CheckReport& into, std::size_t concurrency) : report(into), permits(concurrency) {}

  bool is_serving() const noexcept { return failed_probes < failed_probes_max; }

  CheckReport& report;
  Semaphore permits;
  unsigned failed_probes = 0;
};

Task<> run_case(Run& run, CaseResult& result) {
  const CheckTarget& target = run.report.target;
  if (!run.is_serving()) {
    result.verdict = failed("the server keeps serving", "not run: the server no longer serves");
    co_return;
  }
  const Script script = result.test_case->script == nullptr ? check_wire : result.test_case->script;
  result.verdict = co_await script(target, *result.test_case);
  const std::string trouble = co_await probe(target);
  run.failed_probes = trouble.empty() ? 0 : run.failed_probes + 1;
  if (trouble.empty() || result.verdict.kind == VerdictKind::failed) co_return;
  result.verdict.kind = VerdictKind::failed;
  result.verdict.expected = "the server keeps serving";
  result.verdict.actual = "a GET after the case got: " + trouble;
}

Task<> run_when_permitted(Run& run, CaseResult& result) {
  const auto permit = co_await run.permits.acquire();
  if (permit) co_await run_case(run, result);
}

Task<> run_together(Scope& scope, Run& run) {
  for (CaseResult& each : run.report.results) {
    const CasePace pace = each.test_case->pace;
    if (pace == CasePace::alone) continue;
    scope.spawn(pace == CasePace::slow ? run_case(run, each) : run_when_permitted(run, each));
  }
  co_return;
}

Task<> run_alone(Run& run) {
  const Context context = co_await this_context();
  for (CaseResult& each : run.report.results) {
    if (context.cancelled()) break;
    if (each.test_case->pace == CasePace::alone) co_await run_case(run, each);
  }
}

}  // namespace

std::size_t CheckReport::count(VerdictKind kind) const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count(results, kind, [](const CaseResult& each) { return each.verdict.kind; }));
}

Task<CheckReport> run_checks(CheckPlan plan) {
  const Context context = co_await this_context();
  CheckReport report;
  report.target = std::move(plan.target);
  for (const Case* each : plan.cases) {
    CaseResult& result = report.results.emplace_back();
    result.test_case = each;
    result.verdict = failed("a verdict", "not run");
  }
  const Instant start = context.loop->platform().now();
  Run run(report, plan.concurrency);
  const auto played = co_await with_scope(OnFailure::isolate, run_together, std::ref(run));
  static_cast<void>(played);
  co_await run_alone(run);
  report.elapsed = context.loop->platform().now() - start;
  co_return report;
}

}  // namespace weir::check
