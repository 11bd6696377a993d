// Sends every wire case through the head parser and the chunk decoder: in one piece, byte by
// byte, and cut in two at every point. The verdict is always the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/http1_cases.hpp"
#include "weir/http/detail/h1/chunked.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/task/test/sweep_budget.hpp"

namespace weir::tests::http1_parser_cases_test {
namespace {

using http::Method;
using http::ParseError;

/// The result of all bytes of a connection.
struct Verdict {
  std::vector<int> answers;  ///< final statuses in order
  bool interim = false;      ///< True if a 100 came before the first final status
  bool closed = false;
  ParseError error = ParseError::none;
  std::string bodies;  ///< data and trailers of all bodies

  bool operator==(const Verdict&) const = default;
};

/// A Connection is a minimal server that frames requests. It answers each complete request with
/// 200.
class Connection {
 public:
  void receive(std::string_view bytes) {
    input_ += bytes;
    while (!verdict_.closed && step()) {
    }
  }

  const Verdict& verdict() const { return verdict_; }

 private:
  /// Takes a head or a piece of a body. Returns false if none is available.
  bool step() {
    if (!in_body_) return read_head();
    if (head_chunked_) return read_chunks();
    const std::size_t size = std::min<std::uint64_t>(left_, input_.size());
    verdict_.bodies += input_.substr(0, size);
    input_.erase(0, size);
    left_ -= size;
    if (left_ == 0) finish();
    return left_ == 0;
  }

  bool read_head() {
    const http::ParseResult result = parser_.parse(input_, head_);
    if (result.kind == http::ParseResult::Kind::incomplete) return false;
    if (result.kind == http::ParseResult::Kind::error) {
      refuse(result.error);
      return true;
    }
    in_body_ = true;
    keep_ = head_.keep_alive();
    head_chunked_ = head_.chunked();
    left_ = head_.content_length();
    const bool served = head_.method() != Method::other && head_.method() != Method::connect;
    status_ = served ? 200 : 405;
    if (head_.expects_continue() && head_.has_body() && verdict_.answers.empty()) {
      verdict_.interim = true;
    }
    input_.erase(0, result.consumed);
    return true;
  }

  bool read_chunks() {
    using Kind = http::ChunkedDecoder::Step::Kind;
    const http::ChunkedDecoder::Step step = chunks_.next(input_);
    verdict_.bodies += step.data;
    input_.erase(0, step.consumed);
    if (step.kind == Kind::error) refuse(step.error);
    if (step.kind == Kind::end) {
      verdict_.bodies += chunks_.trailers().lines();
      chunks_.reset();
      finish();
    }
    return step.kind != Kind::need_more;
  }

  void finish() {
    in_body_ = false;
    verdict_.bodies += '|';
    verdict_.answers.push_back(status_);
    verdict_.closed = !keep_;
  }

  void refuse(ParseError error) {
    verdict_.answers.push_back(code_of(to_status(error)));
    verdict_.error = error;
    verdict_.closed = true;
  }

  std::string input_;
  http::HeadParser parser_;
  http::RequestHead head_;
  http::ChunkedDecoder chunks_;
  Verdict verdict_;
  std::uint64_t left_ = 0;
  int status_ = 0;
  bool in_body_ = false;
  bool head_chunked_ = false;
  bool keep_ = false;
};

Verdict verdict_of(std::string_view bytes, std::size_t cut) {
  Connection connection;
  connection.receive(bytes.substr(0, cut));
  connection.receive(bytes.substr(cut));
  return connection.verdict();
}

Verdict verdict_byte_by_byte(std::string_view bytes) {
  Connection connection;
  for (std::size_t index = 0; index < bytes.size(); ++index) {
    connection.receive(bytes.substr(index, 1));
  }
  return connection.verdict();
}

std::vector<Http1Case> all_cases() {
  std::vector<Http1Case> cases = read_http1_cases("http1-cases.json");
  for (const char* const file : {"http1-more.json", "http1-smuggling.json", "http1-found.json"}) {
    std::vector<Http1Case> more = read_http1_cases(file);
    std::move(more.begin(), more.end(), std::back_inserter(cases));
  }
  return cases;
}

TEST(Http1ParserCases, TheCaseFilesExist) {
  EXPECT_EQ(read_http1_cases("http1-cases.json").size(), 83u);
  EXPECT_GE(read_http1_cases("http1-more.json").size(), 400u);
  std::set<std::string> ids;
  for (const Http1Case& each : all_cases()) EXPECT_TRUE(ids.insert(each.id).second) << each.id;
}

TEST(Http1ParserCases, EveryVerdictIsAllowed) {
  for (const Http1Case& each : all_cases()) {
    const Verdict verdict = verdict_of(each.bytes, each.bytes.size());
    const Http1Outcome outcome{verdict.interim, verdict.answers.empty() ? 0 : verdict.answers[0],
                               verdict.closed};
    EXPECT_TRUE(matches_expectation(each, outcome))
        << each.id << " (" << each.why << "): " << outcome.status << " " << name_of(verdict.error);
    if (each.answers) {
      EXPECT_EQ(verdict.answers.size(), *each.answers)
          << each.id << " (" << each.why << "): " << name_of(verdict.error);
    }
  }
}

TEST(Http1ParserCases, NoCutChangesAVerdict) {
  constexpr std::size_t cuts_max = 1500;
  SweepBudget budget;
  for (const Http1Case& each : all_cases()) {
    const std::size_t size = each.bytes.size();
    const Verdict whole = verdict_of(each.bytes, size);
    EXPECT_EQ(verdict_byte_by_byte(each.bytes), whole) << each.id << " byte by byte";
    const std::size_t stride = size / cuts_max + 1;  // 1 except for the cases that flood
    for (std::size_t at = 0; at * stride < size; at = budget.after(at)) {
      const std::size_t cut = at * stride;
      ASSERT_EQ(verdict_of(each.bytes, cut), whole) << each.id << " cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace weir::tests::http1_parser_cases_test
