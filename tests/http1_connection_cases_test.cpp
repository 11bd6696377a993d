// Sends every wire case through a whole server in memory: in one piece, byte by byte, and cut in
// two at every point. The answers are always the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/http1_cases.hpp"
#include "weir/http/test/http_fixture.hpp"
#include "weir/task/test/sweep_budget.hpp"

namespace weir::tests::http1_connection_cases_test {
namespace {

/// The answers that a connection received for its bytes.
struct Got {
  std::string text;  ///< received text without interim answers
  std::vector<sim::HttpResponse> answers;
  bool closed = false;
  bool reset = false;
};

Task<http::Response> body_back(http::Request& request) {
  auto body = co_await request.body_view();
  if (!body) co_return http::Response(http::to_status(body.error()));
  co_return http::text(*body);
}
Task<http::Response> body_unread(http::Request&) {
  co_return http::text("unread\n");
}

constexpr std::string_view continue_head = "HTTP/1.1 100 Continue\r\n\r\n";

/// Returns true if the client waits for an answer before it sends its body. A handler may leave
/// that body unread. The connection then stays open only if the body has come anyway.
bool waits_for_100(const Http1Case& test_case) {
  return test_case.bytes.find("100-") != std::string::npos;
}

/// The use of bodies by the handlers. It must not change what the server rejects.
enum class Handlers { ignore, read, wait_and_ignore };

class CaseServer : public HttpFixture {
 public:
  explicit CaseServer(Handlers handlers) {
    for (const char* const method : {"GET", "POST", "PUT", "DELETE", "PATCH"}) {
      add(method, handlers);
    }
    serve();
  }

  Got send(std::string_view bytes, std::size_t cut) {
    MemoryPeer& peer = connect();
    talk(peer, bytes.substr(0, cut));
    talk(peer, bytes.substr(cut));
    return got(peer);
  }
  Got send_bytewise(std::string_view bytes) {
    MemoryPeer& peer = connect();
    for (std::size_t index = 0; index < bytes.size(); ++index) talk(peer, bytes.substr(index, 1));
    return got(peer);
  }

 private:
  void add(std::string_view method, Handlers handlers) {
    if (handlers == Handlers::ignore) {
      routes_.add(method, "/{rest...}", [](std::string_view) { return http::text("hello\n"); });
    } else if (handlers == Handlers::read) {
      routes_.add(method, "/{rest...}",
                  [](http::Request& request, std::string_view) { return body_back(request); });
    } else {
      routes_.add(method, "/{rest...}",
                  [](http::Request& request, std::string_view) { return body_unread(request); });
    }
  }
  Got got(MemoryPeer& peer) {
    Got got;
    got.text = peer.received();
    got.answers = sim::parse_http_responses(got.text);
    for (std::size_t at = 0; at = got.text.find(continue_head, at), at != got.text.npos;) {
      got.text.erase(at, continue_head.size());
    }
    got.closed = peer.ended();
    got.reset = peer.was_reset();
    peer.close();
    settle();
    return got;
  }
};

Http1Outcome outcome_of(const Got& got) {
  Http1Outcome outcome{.interim = false, .status = 0, .closes = got.closed};
  for (const sim::HttpResponse& each : got.answers) {
    if (each.status >= 200) {
      outcome.status = each.status;
      break;
    }
    outcome.interim = outcome.interim || each.status == 100;
  }
  return outcome;
}

std::vector<Http1Case> all_cases() {
  std::vector<Http1Case> cases = read_http1_cases("http1-cases.json");
  for (const char* const file : {"http1-more.json", "http1-smuggling.json", "http1-found.json"}) {
    std::vector<Http1Case> more = read_http1_cases(file);
    std::move(more.begin(), more.end(), std::back_inserter(cases));
  }
  return cases;
}

class Http1ConnectionCases : public testing::TestWithParam<Handlers> {};

TEST_P(Http1ConnectionCases, EveryVerdictIsAllowed) {
  CaseServer server(GetParam());
  for (const Http1Case& each : all_cases()) {
    const Got got = server.send(each.bytes, each.bytes.size());
    const Http1Outcome outcome = outcome_of(got);
    if (GetParam() != Handlers::read && waits_for_100(each) && outcome.closes) continue;
    EXPECT_TRUE(matches_expectation(each, outcome))
        << each.id << " (" << each.why << "): " << sim::statuses_of(got.answers);
  }
  server.shut_down();
}

TEST_P(Http1ConnectionCases, NoCutChangesAVerdict) {
  CaseServer server(GetParam());
  constexpr std::size_t cuts_max = 150;
  SweepBudget budget;
  for (const Http1Case& each : all_cases()) {
    const std::size_t size = each.bytes.size();
    const Got whole = server.send(each.bytes, size);
    const Got bytewise = server.send_bytewise(each.bytes);
    if (GetParam() != Handlers::read && waits_for_100(each)) continue;
    EXPECT_EQ(bytewise.text, whole.text) << each.id << " byte by byte";
    EXPECT_EQ(bytewise.closed, whole.closed) << each.id << " byte by byte";
    const std::size_t stride = size / cuts_max + 1;
    for (std::size_t at = 0; at * stride + 1 < size; at = budget.after(at)) {
      const std::size_t cut = at * stride + 1;
      const Got cut_in_two = server.send(each.bytes, cut);
      ASSERT_EQ(cut_in_two.text, whole.text) << each.id << " cut at " << cut;
      ASSERT_EQ(cut_in_two.closed, whole.closed) << each.id << " cut at " << cut;
    }
  }
  server.shut_down();
}

std::string name_of_handlers(const testing::TestParamInfo<Handlers>& info) {
  constexpr const char* names[] = {"Ignore", "Read", "WaitAndIgnore"};
  return names[static_cast<std::size_t>(info.param)];
}
/// Returns all kinds of handlers; a random one if the process samples.
std::vector<Handlers> kinds_of_handlers() {
  std::vector kinds{Handlers::ignore, Handlers::read, Handlers::wait_and_ignore};
  const std::size_t all = kinds.size();
  return SweepBudget::sample(std::move(kinds), all);
}
INSTANTIATE_TEST_SUITE_P(Every, Http1ConnectionCases, testing::ValuesIn(kinds_of_handlers()),
                         name_of_handlers);

}  // namespace
}  // namespace weir::tests::http1_connection_cases_test
