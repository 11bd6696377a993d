// Sends every wire case to a running server on every backend: in one piece, byte by byte, and cut
// in two. The verdict never depends on the cuts. Every answer is complete and in order, and no
// connection is reset.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/http1_cases.hpp"
#include "tests/server.hpp"
#include "tests/wire_runner.hpp"

namespace weir::tests::http1_wire_test {
namespace {

/// The part of a case's outcome that the cuts must not change. A body that has already arrived
/// needs no 100, so interim answers are left out.
struct Verdict {
  std::vector<std::pair<int, std::string>> answers;  ///< final answers: status and body
  bool closes = false;
  bool operator==(const Verdict&) const = default;
  friend void PrintTo(const Verdict& verdict, std::ostream* out) {
    for (const auto& [status, body] : verdict.answers) *out << status << ' ';
    *out << (verdict.closes ? "and closes" : "and stays open");
  }
};

/// The target of the cases that POST to /: no route, a handler that reads the body, or both in
/// turn. A case that expects a 100 needs the reader, because only a reader requests the body.
enum class Target { both, reader };

std::vector<Http1Case> cases_of(std::string_view file, Target target) {
  constexpr std::string_view to_no_route = "POST / ";
  constexpr std::string_view to_reader = "POST /users/1/notes ";
  std::vector<Http1Case> cases;
  for (Http1Case& each : read_http1_cases(file)) {
    const bool posts = each.bytes.starts_with(to_no_route);
    const bool needs_reader = posts && (target == Target::reader || each.expect.front() == "100");
    if (!needs_reader) cases.push_back(each);
    if (!posts) continue;
    each.id += " read";
    each.bytes.replace(0, to_no_route.size(), to_reader);
    cases.push_back(std::move(each));
  }
  return cases;
}

constexpr std::string_view shared_file = "http1-cases.json";

std::vector<Http1Case> all_cases(Target target) {
  std::vector<Http1Case> cases = cases_of(shared_file, target);
  for (const char* const file : {"http1-more.json", "http1-smuggling.json", "http1-found.json"}) {
    std::vector<Http1Case> more = cases_of(file, target);
    std::move(more.begin(), more.end(), std::back_inserter(cases));
  }
  return cases;
}

class Http1Wire : public EachBackend {
 protected:
  void SetUp() override {
    EachBackend::SetUp();
    if (IsSkipped()) return;
    server_.emplace("hello", GetParam(), std::vector<std::string>{"--cores", "1"});
  }
  void TearDown() override {
    if (server_) {
      EXPECT_EQ(server_->stop(), 0) << server_->process().errors();
    }
  }

  std::vector<WireResult> run(const std::vector<WireInput>& jobs) {
    return run_wire_inputs(server_->port(), jobs);
  }

  /// Checks one result independently of the cuts.
  Verdict check(const Http1Case& test_case, const WireResult& result, const std::string& how) {
    const std::string which = test_case.id + " (" + test_case.why + ") " + how;
    EXPECT_EQ(result.failure, "") << which << "\n" << result.received;
    // A server that waits for more bytes may answer after the client has ended its sending. That
    // answer does not count.
    const bool waits = test_case.answers == 0;
    const auto responses =
        read_responses(result.received.substr(0, waits ? result.before_end : std::string::npos));
    EXPECT_TRUE(responses) << which << "\n" << result.received;
    if (!responses) return {};
    Verdict verdict;
    Http1Outcome outcome;
    for (const Response& each : *responses) {
      EXPECT_FALSE(verdict.closes) << which << ": an answer after the last one";
      if (each.status < 200) {
        outcome.interim = outcome.interim || verdict.answers.empty();
        continue;
      }
      verdict.answers.emplace_back(each.status, each.body);
      verdict.closes = each.header("Connection") == "close";
    }
    EXPECT_EQ(result.server_ended, verdict.closes) << which << "\n" << result.received;
    outcome.status = verdict.answers.empty() ? 0 : verdict.answers.front().first;
    outcome.closes = verdict.closes;
    EXPECT_TRUE(matches_expectation(test_case, outcome)) << which << "\n" << result.received;
    if (test_case.answers) {
      EXPECT_EQ(verdict.answers.size(), *test_case.answers) << which << "\n" << result.received;
    }
    return verdict;
  }

  std::vector<Verdict> verdicts_of_whole(const std::vector<Http1Case>& cases) {
    std::vector<WireInput> jobs;
    for (const Http1Case& each : cases) jobs.push_back({each.bytes, {}});
    const std::vector<WireResult> results = run(jobs);
    std::vector<Verdict> verdicts;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      verdicts.push_back(check(cases[i], results[i], "whole"));
    }
    return verdicts;
  }

  std::optional<Server> server_;
};

TEST_P(Http1Wire, TheVerdictIsTheSameByteByByte) {
  const std::vector<Http1Case> cases = all_cases(Target::both);
  const std::vector<Verdict> whole = verdicts_of_whole(cases);
  std::vector<WireInput> jobs;
  for (const Http1Case& each : cases) {
    jobs.push_back({each.bytes, {}});
    // Cases that flood are sent in larger pieces after their first 50 bytes.
    const std::size_t step = each.bytes.size() / 300 + 1;
    for (std::size_t cut = 1; cut < each.bytes.size(); cut += cut < 50 ? 1 : step) {
      jobs.back().cuts.push_back(cut);
    }
  }
  const std::vector<WireResult> results = run(jobs);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(check(cases[i], results[i], "byte by byte"), whole[i]) << cases[i].id;
  }
}

TEST_P(Http1Wire, TheVerdictIsTheSameCutInTwo) {
  // The shared cases are cut at every point on every backend. Each point of Weir's own cases is
  // cut on one of the backends. Floods are cut near both ends. The tests of weir/http cut all
  // cases at all points, on a simulated network.
  constexpr std::size_t flood = 700;
  const std::vector<Http1Case> cases = all_cases(Target::reader);
  const std::size_t shared = cases_of(shared_file, Target::reader).size();
  const std::vector<Verdict> whole = verdicts_of_whole(cases);
  const auto turn =
      static_cast<std::size_t>(std::ranges::find(all_backends, GetParam()) - all_backends.begin());
  std::vector<WireInput> jobs;
  std::vector<std::size_t> case_of;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::size_t size = cases[i].bytes.size();
    for (std::size_t cut = 1; cut < size; ++cut) {
      if (i >= shared && cut % all_backends.size() != turn) continue;
      if (size > flood && cut > 40 && cut < size - 40) continue;
      jobs.push_back({cases[i].bytes, {cut}});
      case_of.push_back(i);
    }
  }
  const std::vector<WireResult> results = run(jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Http1Case& test_case = cases[case_of[i]];
    const std::string how = "cut at " + std::to_string(jobs[i].cuts.front());
    ASSERT_EQ(check(test_case, results[i], how), whole[case_of[i]]) << test_case.id << " " << how;
  }
}

INSTANTIATE_TEST_SUITE_P(On, Http1Wire, testing::ValuesIn(sampled_backends()), name_of);

}  // namespace
}  // namespace weir::tests::http1_wire_test
