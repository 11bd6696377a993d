// Tests of whole checks, against Weir's server and against a faulty server.
#include "tools/weir/check/check_run.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tools/weir/check/check_connection.hpp"
#include "tools/weir/check/check_report.hpp"
#include "tools/weir/check/faulty_server_fixture.hpp"
#include "tools/weir/check/probe.hpp"
#include "weir/http.hpp"
#include "weir/http/test/heap_fixture.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/test/sweep_budget.hpp"
#include "weir/testing/test/loop_fixture.hpp"
#include "weir/tls.hpp"

namespace weir::check::check_run_test {
namespace {

const Endpoint endpoint = Endpoint::loopback(8080);

/// Runs the server and the check in virtual time on one loop.
class CheckRun : public LoopTest {
 protected:
  CheckRun() {
    target_.endpoint = endpoint;
    target_.authority = "a.test:8080";
    target_.slow_timeout = std::chrono::seconds(40);
    target_.idle_timeout = std::chrono::seconds(90);
    target_.idle_must_close = true;
  }

  /// Returns the plan for the cases that `selector` names; empty: all of HTTP/1.1 without TLS.
  CheckPlan plan(std::string_view selector = {}) {
    CheckPlan made;
    made.target = target_;
    for (const Case& each : registry_.cases()) {
      const bool plain = each.rule->name != "tls" && each.rule->name != "http2";
      const bool wanted = selector.empty() ? plain : is_selected(each, selector);
      if (wanted) made.cases.push_back(&each);
    }
    return made;
  }

  /// Returns the plan with one of six of its cases if the process samples; see SweepBudget.
  static CheckPlan sampled(CheckPlan plan) {
    plan.cases = SweepBudget::sample(std::move(plan.cases), 6);
    return plan;
  }

  CheckReport check_faulty(const Faults& faults, CheckPlan plan);
  CheckReport check_weir(CheckPlan plan, std::shared_ptr<tls::Server> secure = nullptr);
  CheckReport check_weir_over_tls(CheckPlan plan);

  /// Returns the verdicts by name.
  static std::map<std::string, Verdict> verdicts(const CheckReport& report) {
    std::map<std::string, Verdict> all;
    for (const CaseResult& each : report.results) all[each.test_case->name] = each.verdict;
    return all;
  }

  CaseRegistry registry_;
  CheckTarget target_;
  http::PlainHttp2 plain_http2_ = http::PlainHttp2::off;
};

Task<CheckReport> baseline_and_run(CheckPlan plan) {
  const std::string trouble = co_await find_baseline(plan.target);
  EXPECT_EQ(trouble, "");
  co_return co_await run_checks(std::move(plan));
}

Task<CheckReport> on_faulty(Scope& scope, FaultyServer& server, CheckPlan plan) {
  auto listener = co_await tcp::listen(endpoint);
  scope.spawn(server.serve(scope, std::move(*listener)));
  CheckReport report = co_await baseline_and_run(std::move(plan));
  scope.cancel();
  co_return report;
}

Task<CheckReport> on_weir(Scope& scope, const http::Router& routes,
                          const http::ServeOptions& options, CheckPlan plan) {
  scope.spawn(http::serve(scope, routes, options));
  if (options.tls != nullptr) std::ignore = co_await sleep(std::chrono::seconds(1));  // it loads
  CheckReport report = co_await baseline_and_run(std::move(plan));
  scope.cancel();
  co_return report;
}

Task<CheckReport> with_faulty(FaultyServer& server, CheckPlan plan) {
  auto report =
      co_await with_scope(OnFailure::isolate, on_faulty, std::ref(server), std::move(plan));
  co_return std::move(*report);
}

Task<CheckReport> with_weir(const http::Router& routes, const http::ServeOptions& options,
                            CheckPlan plan) {
  auto report = co_await with_scope(OnFailure::isolate, on_weir, std::cref(routes),
                                    std::cref(options), std::move(plan));
  co_return std::move(*report);
}

CheckReport CheckRun::check_faulty(const Faults& faults, CheckPlan plan) {
  FaultyServer server(faults);
  return run_made([&server](CheckPlan own) { return with_faulty(server, std::move(own)); },
                  std::move(plan));
}

Task<http::Response> body_back(http::Request& request) {
  auto body = co_await request.body_view();
  if (!body) co_return http::Response(http::to_status(body.error()));
  co_return http::text(*body);
}

Task<Result<>> echo(http::WebSocket& socket) {
  for (;;) {
    WEIR_CO_TRY(const http::WebSocketMessage message, co_await socket.read());
    WEIR_CO_TRY(co_await socket.send(message));
  }
}

CheckReport CheckRun::check_weir(CheckPlan plan, std::shared_ptr<tls::Server> secure) {
  http::Router routes;
  routes.get("/", [] { return http::text("hello\n"); });
  routes.post("/", body_back);
  routes.get("/echo", body_back);
  routes.post("/echo", body_back);
  routes.del("/echo", body_back);
  routes.options("/echo", body_back);
  routes.websocket("/ws", echo, {.compression = http::WebSocketCompression{}});
  plan.target.websocket_path = "/ws";
  plan.target.echo_path = "/echo";
  const http::ServeOptions options{
      .endpoint = endpoint, .tls = std::move(secure), .plain_http2 = plain_http2_};
  return run_made([&](CheckPlan own) { return with_weir(routes, options, std::move(own)); },
                  std::move(plan));
}

CheckReport CheckRun::check_weir_over_tls(CheckPlan plan) {
  tls::ServerOptions server_options;
  server_options.self_signed.emplace();
  server_options.protocols = {"h2", "http/1.1"};
  tls::ClientOptions client_options;
  client_options.trust = {};
  client_options.verification = tls::Verification::none;
  client_options.tickets = false;
  tls::Client client(client_options);
  tls::Connector connector(*loop_, client);
  client_options.protocols = {"h2"};
  tls::Client http2_client(client_options);
  tls::Connector http2_connector(*loop_, http2_client);
  plan.target.tls = &connector;
  plan.target.tls_http2 = &http2_connector;
  plan.target.host = "a.test";
  return check_weir(std::move(plan), std::make_shared<tls::Server>(std::move(server_options)));
}

std::string text_of(const CheckReport& report) {
  ReportOptions options;
  options.url = "http://a.test:8080/";
  return to_text(report, options);
}

/// The server ignores conditions for responses of handlers, which have no validators, and answers
/// OPTIONS with 200 or 405. The path of bodies has no QUERY.
const std::set<std::string> unused{"answers/not-modified",
                                   "answers/no-content",
                                   "answers/not-modified-fields",
                                   "answers/not-modified-fields-gzip",
                                   "answers/tags-of-codings",
                                   "answers/condition-repeated",
                                   "bodies/query",
                                   "bodies/http2-post",
                                   "bodies/http2-delete",
                                   "bodies/http2-get",
                                   "bodies/http2-options",
                                   "bodies/http2-query",
                                   "bodies/http2-gzip"};

TEST_F(CheckRun, WeirsOwnServerPassesEverything) {
  const CheckPlan all = plan();
  EXPECT_GT(all.cases.size(), 500 + unused.size());
  const CheckReport report = check_weir(sampled(all));
  EXPECT_EQ(report.count(VerdictKind::failed), 0U) << text_of(report);
  for (const CaseResult& each : report.results) {
    if (each.verdict.kind != VerdictKind::not_applicable) continue;
    EXPECT_TRUE(unused.contains(each.test_case->name))
        << each.test_case->name << ": " << each.verdict.actual;
  }
}

TEST_F(CheckRun, WeirsOwnServerPassesEverythingOverTls) {
  CheckPlan all = plan();
  for (const Case* each : plan("tls").cases) all.cases.push_back(each);
  EXPECT_GT(all.cases.size(), 680 + unused.size());
  const CheckReport report = check_weir_over_tls(sampled(std::move(all)));
  EXPECT_EQ(report.count(VerdictKind::failed), 0U) << text_of(report);
  for (const CaseResult& each : report.results) {
    const std::string& name = each.test_case->name;
    const bool judged = each.verdict.kind != VerdictKind::not_applicable;
    // The server speaks HTTP/2 here, unlike above.
    const bool may_be_unused =
        unused.contains(name) && (!name.starts_with("bodies/http2-") || name.ends_with("-query"));
    EXPECT_TRUE(judged || may_be_unused) << name << ": " << each.verdict.actual;
  }
  EXPECT_TRUE(report.target.connection.starts_with("TLSv1.3, TLS_")) << report.target.connection;
}

TEST_F(CheckRun, ACorrectMinimalServerPassesEverything) {
  const CheckReport report = check_faulty({}, sampled(plan()));
  EXPECT_EQ(report.count(VerdictKind::failed), 0U) << text_of(report);
}

struct Finding {
  const char* what;
  Faults faults;
  const char* selector;               ///< cases to run
  std::vector<std::string> failures;  ///< names of exactly the cases that fail
};

Faults with(bool Faults::* fault) {
  Faults faults;
  faults.*fault = true;
  return faults;
}

class EachFault : public CheckRun, public testing::WithParamInterface<Finding> {};

TEST_P(EachFault, IsFound) {
  const Finding& finding = GetParam();
  const CheckReport report = check_faulty(finding.faults, plan(finding.selector));
  std::vector<std::string> failures;
  for (const CaseResult& each : report.results) {
    if (each.verdict.kind == VerdictKind::failed) failures.push_back(each.test_case->name);
  }
  EXPECT_EQ(failures, finding.failures) << text_of(report);
}

INSTANTIATE_TEST_SUITE_P(
    Of, EachFault,
    testing::Values(
        Finding{"BareLineFeeds",
                with(&Faults::takes_bare_lf),
                "line-ends",
                {"rule-01-01", "rule-01-04", "rule-01-09", "rule-01-14", "rule-01-19"}},
        Finding{"BothLengths",
                with(&Faults::takes_both_lengths),
                "transfer-encoding",
                {"transfer-encoding-01", "transfer-encoding-02", "rule-08-22", "rule-08-23"}},
        Finding{"AnswersOutOfOrder",
                with(&Faults::swaps_answers),
                "connection/pipelining",
                {"connection/pipelining"}},
        Finding{"NoTimeout",
                with(&Faults::never_times_out),
                "slow",
                {"slow/head-bytes", "slow/head-lines", "slow/body", "slow/chunks", "slow/idle",
                 "slow/idle-after-an-answer"}},
        Finding{"ABodyForHead", with(&Faults::body_to_head), "answers/head", {"answers/head"}},
        Finding{"NoClose",
                with(&Faults::stays_open),
                "connection/close",
                {"connection/close", "connection/close-of-1.0"}},
        Finding{"RequestsAfterAnError",
                with(&Faults::reads_on),
                "after-an-error",
                {"rule-14-01", "rule-14-02"}},
        Finding{
            "Splitting", with(&Faults::echoes_target), "answers/splitting", {"answers/splitting"}},
        Finding{"NoDate", with(&Faults::lacks_date), "answers/date", {"answers/date"}},
        Finding{"NoRestOfUploads",
                with(&Faults::cuts_early),
                "limits/upload",
                {"limits/upload"}},  // it reads chunks without a limit
        Finding{"NoContinue",
                with(&Faults::never_continues),
                "expect",
                {"rule-11-02", "rule-11-03", "expect/continue"}}),
    [](const testing::TestParamInfo<Finding>& info) { return std::string(info.param.what); });

TEST_F(CheckRun, PassingCasesWaitOnlyForSilence) {
  CheckPlan quick = plan();
  std::erase_if(quick.cases, [](const Case* each) { return each->rule->name == "slow"; });
  quick.target.timeout = std::chrono::hours(1);
  const CheckReport report = check_weir(std::move(quick));
  EXPECT_LT(report.elapsed, std::chrono::minutes(1)) << text_of(report);
}

TEST_F(CheckRun, LenientAcceptsWhatTheRfcAllows) {
  CheckPlan lenient = plan("line-ends");
  lenient.target.lenient = true;
  const CheckReport report = check_faulty(with(&Faults::takes_bare_lf), std::move(lenient));
  EXPECT_EQ(report.count(VerdictKind::failed), 0U) << text_of(report);
}

TEST_F(CheckRun, ADeadServerFailsTheCaseAndAllLaterCases) {
  CheckPlan all = plan("fields");
  all.concurrency = 1;
  const CheckReport report = check_faulty(with(&Faults::dies_of_nul), std::move(all));
  auto verdict = verdicts(report);
  EXPECT_EQ(verdict["header-05"].kind, VerdictKind::passed);
  EXPECT_EQ(verdict["header-06"].kind, VerdictKind::failed);
  EXPECT_EQ(verdict["rule-06-25"].kind, VerdictKind::failed);
  EXPECT_EQ(verdict["rule-06-25"].actual, "not run: the server no longer serves");
}

TEST_F(CheckRun, ReportsAMissingServer) {
  const std::string trouble = run_made([this](int) { return find_baseline(target_); }, 0);
  EXPECT_TRUE(trouble.starts_with("no connection: ")) << trouble;
  EXPECT_EQ(target_.get.status, 0);
}

/// A script that takes one second and passes.
Task<Verdict> pass_after_a_second(const CheckTarget&, const Case&) {
  const auto slept = co_await sleep(std::chrono::seconds(1));
  static_cast<void>(slept);
  co_return passed("a second", "a second");
}

/// A script that ends the life of a server that dies of a NUL.
Task<Verdict> kill_server(const CheckTarget& target, const Case&) {
  CheckConnection connection(target);
  const bool opened = co_await connection.open();
  bool sent = false;
  if (opened) sent = co_await connection.send(std::string_view("\0", 1), target.timeout);
  const bool ended = co_await connection.wait_for_close(target.timeout);
  co_return sent&& ended ? passed("death", "death") : failed("death", "life");
}

Task<Verdict> fail_immediately(const CheckTarget&, const Case&) {
  co_return failed("own expectation", "own result");
}

Case scripted(const Rule& rule, Script script) {
  Case made;
  made.name = rule.name + "/case";
  made.rule = &rule;
  made.script = script;
  if (rule.name == "slow") made.pace = CasePace::slow;
  return made;
}

TEST_F(CheckRun, RunsAtMostTheConcurrentCasesOfThePlanBesideTheSlowOnes) {
  const Rule quick{1, "quick", "", ""};
  const Rule slow{2, "slow", "", ""};
  const Case quick_case = scripted(quick, pass_after_a_second);
  const Case slow_case = scripted(slow, pass_after_a_second);
  CheckPlan own;
  own.target = target_;
  own.concurrency = 2;
  own.cases = {&quick_case, &slow_case,  &quick_case, &quick_case,
               &slow_case,  &quick_case, &slow_case,  &quick_case};
  const CheckReport report = check_faulty({}, std::move(own));
  EXPECT_EQ(report.elapsed, std::chrono::seconds(3));
  EXPECT_EQ(report.count(VerdictKind::passed), 8U);
  ASSERT_EQ(report.results.size(), 8U);
  EXPECT_EQ(report.results[1].test_case, &slow_case);
  EXPECT_EQ(report.results[2].test_case, &quick_case);
}

TEST_F(CheckRun, WeirsOwnServerPassesTheCasesAboutHttp2) {
  plain_http2_ = http::PlainHttp2::prior_knowledge;
  target_.memory = allocated_bytes;  // of the server and of the check
  const CheckPlan all = plan("http2");
  EXPECT_GT(all.cases.size(), 95U);
  const CheckReport report = check_weir(sampled(all));
  EXPECT_EQ(report.count(VerdictKind::passed), report.results.size()) << text_of(report);
}

TEST_F(CheckRun, ChecksAServerThatDoesNotSpeakHttp1) {
  plain_http2_ = http::PlainHttp2::only;
  const CheckReport report = check_weir(sampled(plan("http2")));
  EXPECT_EQ(report.count(VerdictKind::failed), 0U) << text_of(report);
  for (const CaseResult& each : report.results) {
    const bool measures_memory = each.verdict.kind == VerdictKind::not_applicable;
    EXPECT_TRUE(!measures_memory || each.verdict.actual.contains("memory"))
        << each.test_case->name << ": " << each.verdict.actual;
  }
  EXPECT_GT(report.count(VerdictKind::passed), report.results.size() / 2);
  EXPECT_TRUE(report.target.http2_only);
  EXPECT_EQ(report.target.get.status, 200);
  EXPECT_EQ(report.target.post.status, 200);
}

TEST_F(CheckRun, WeirsOwnServerPassesTheCasesAboutHttp2OverTls) {
  target_.memory = allocated_bytes;
  const CheckReport report = check_weir_over_tls(sampled(plan("http2")));
  EXPECT_EQ(report.count(VerdictKind::passed), report.results.size()) << text_of(report);
}

TEST_F(CheckRun, RunsTheCasesThatMeasureTheServerAfterTheOthersAndOneAtATime) {
  const Rule rule{1, "rule", "", ""};
  Case alone = scripted(rule, pass_after_a_second);
  alone.pace = CasePace::alone;
  const Case quick = scripted(rule, pass_after_a_second);
  CheckPlan own;
  own.target = target_;
  own.cases = {&alone, &quick, &alone, &quick};
  const CheckReport report = check_faulty({}, std::move(own));
  EXPECT_EQ(report.elapsed, std::chrono::seconds(3));
  EXPECT_EQ(report.count(VerdictKind::passed), 4U);
}

TEST_F(CheckRun, AServerWithoutHttp2IsNotJudgedByItsCases) {
  const CheckReport report = check_faulty({}, plan("http2-get"));
  EXPECT_EQ(report.count(VerdictKind::failed), 0U) << text_of(report);
}

TEST_F(CheckRun, StopsAfterThreeFailedProbesInARow) {
  const Rule rule{1, "rule", "", ""};
  const Case kill = scripted(rule, kill_server);
  const Case pass = scripted(rule, pass_after_a_second);
  const Case fail = scripted(rule, fail_immediately);
  CheckPlan own;
  own.target = target_;
  own.concurrency = 1;
  own.cases = {&pass, &kill, &fail, &pass, &pass};
  const CheckReport report = check_faulty(with(&Faults::dies_of_nul), std::move(own));
  ASSERT_EQ(report.results.size(), 5U);
  const auto verdict = [&](std::size_t index) { return report.results[index].verdict; };
  EXPECT_EQ(verdict(0).kind, VerdictKind::passed);
  for (const std::size_t index : {1U, 3U}) {
    EXPECT_EQ(verdict(index).kind, VerdictKind::failed);
    EXPECT_EQ(verdict(index).expected, "the server keeps serving");
    EXPECT_TRUE(verdict(index).actual.starts_with("a GET after the case got: "));
  }
  EXPECT_EQ(verdict(2).actual, "own result") << "the reason of the case itself stays";
  EXPECT_EQ(verdict(2).expected, "own expectation");
  EXPECT_EQ(verdict(4).actual, "not run: the server no longer serves");
  EXPECT_EQ(verdict(4).expected, "the server keeps serving");
  EXPECT_EQ(report.count(VerdictKind::failed), 4U);
}

TEST_F(CheckRun, TheBaselineHasTheStatusAndTheBodyOfBothMethods) {
  target_.path = "/nothing";
  target_.get = {200, "old"};
  const CheckReport report = check_faulty({}, plan("answers/date"));
  EXPECT_EQ(report.target.get.status, 404);
  EXPECT_EQ(report.target.get.body, "hello\n");
  EXPECT_EQ(report.target.post.status, 200);
  EXPECT_EQ(report.target.post.body, "hello\n");
}

}  // namespace
}  // namespace weir::check::check_run_test
