// Tests of the traces of requests.
#include "weir/http/server/detail/request_trace.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/test/http_fixture.hpp"
#include "weir/loop/detail/stall_detector.hpp"
#include "weir/task/sleep.hpp"

namespace weir::http::request_trace_test {
namespace {

/// Has handlers that answer with the id that they see.
class RequestTraceTest : public HttpTest {
 protected:
  RequestTraceTest() {
    routes_.get("/now", [](Request& request) { return text(request.id()); });
    routes_.get("/later", later);
    routes_.post("/body", later);
  }
  static Task<Response> later(Request& request) {
    const std::string before = request.id();
    std::ignore = co_await sleep(1s);
    std::ignore = co_await request.body();
    EXPECT_EQ(request.id(), before);
    co_return text(before);
  }
  /// Returns the ids of all requests that are sent on one connection.
  std::vector<std::string> ids(std::string_view sent) {
    MemoryPeer& peer = connect();
    std::string got = talk(peer, sent);
    pass(10s);
    got += peer.take();
    std::vector<std::string> ids;
    for (const auto& each : sim::parse_http_responses(got)) ids.push_back(each.body);
    return ids;
  }
};

constexpr std::string_view get_now = "GET /now HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n";
constexpr std::string_view get_later =
    "GET /later HTTP/1.1\r\nHost: a\r\nx-request-ID: yours\r\n\r\n";

TEST_F(RequestTraceTest, EachRequestHasItsOwnId) {
  serve();
  const std::string several = std::string(get_now) + std::string(get_later) + std::string(get_now);
  const auto first = ids(several);
  const auto second = ids(several);
  std::set<std::string> all(first.begin(), first.end());
  all.insert(second.begin(), second.end());
  EXPECT_EQ(all.size(), 6U);
  const std::string prefix = first.front().substr(0, first.front().rfind('-'));
  for (const std::string& each : all) EXPECT_EQ(each.substr(0, each.rfind('-')), prefix);
}

TEST_F(RequestTraceTest, TrustedHeaderSetsTheId) {
  routes_.trust_id_header("X-Request-Id");
  serve();
  EXPECT_EQ(ids(std::string(get_now) + std::string(get_later)),
            (std::vector<std::string>{"mine", "yours"}));
  const auto with_body =
      ids("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nX-Request-Id: body\r\n\r\nok");
  EXPECT_EQ(with_body, std::vector<std::string>{"body"});
  const auto made =
      ids("GET /now HTTP/1.1\r\nHost: a\r\n\r\n"
          "GET /now HTTP/1.1\r\nHost: a\r\nX-Request-Id: a \"b\"\r\n\r\n");
  ASSERT_EQ(made.size(), 2U);
  for (const std::string& each : made) EXPECT_NE(each.find("-0-"), each.npos) << each;
}

/// Returns the id of the request that this thread works for, as a Logger reads it.
std::string current_id() {
  const TraceContext* const trace = loop::CurrentActivity::trace();
  if (trace == nullptr) return "none";
  std::array<char, TraceContext::id_bytes_max> room;
  return std::string(trace->kind()) + " " + std::string(trace->id(room));
}

using Ids = std::vector<std::string>;

Task<> note_in_child(Ids* ids) {
  std::ignore = co_await sleep(1s);
  ids->push_back(current_id());
}
Task<Result<>> note_and_write(BodySink& sink, Ids* ids) {
  ids->push_back(current_id());
  std::ignore = co_await sleep(1s);
  ids->push_back(current_id());
  co_return co_await sink.write("noted");
}
Task<Response> note_in_middleware(Request& request, Next next, Ids* ids) {
  ids->push_back(current_id());
  Response response = co_await next(request);
  ids->push_back(current_id());
  co_return response;
}

// A Logger adds the id to the records of every task of a handler.
TEST_F(RequestTraceTest, EveryPartOfARequestRunsWithItsTrace) {
  Ids ids;
  routes_.get("/sync", [&ids] {
    ids.push_back(current_id());
    return Status::ok;
  });
  routes_.post("/json", [&ids](std::vector<int>) {
    ids.push_back(current_id());
    return Status::ok;
  });
  routes_.get("/waits", [&ids](Request&, Scope& scope) -> Task<Response> {
    ids.push_back(current_id());
    scope.spawn(note_in_child(&ids));
    std::ignore = co_await sleep(1s);
    ids.push_back(current_id());
    co_return Status::ok;
  });
  routes_.get("/streams", [&ids] { return stream("text/plain", note_and_write, &ids); });
  routes_.get("/throws", [&ids]() -> Response {
    ids.push_back(current_id());
    throw std::runtime_error("no");
  });
  routes_.trust_id_header("X-Id");
  serve();
  struct Row {
    std::string_view line;
    std::string_view body;
    std::size_t notes;
  };
  std::string pipeline;
  Ids expected;
  for (const Row& row :
       {Row{"GET /sync", "", 1}, Row{"POST /json", "[1]", 1}, Row{"GET /waits", "", 3},
        Row{"GET /sync", "", 1}, Row{"GET /streams", "", 2}, Row{"GET /throws", "", 1},
        Row{"GET /sync", "", 1}}) {
    const std::string id = "id" + std::to_string(expected.size());
    const std::string request = std::string(row.line) + " HTTP/1.1\r\nHost: a\r\nX-Id: " + id +
                                "\r\nContent-Length: " + std::to_string(row.body.size()) +
                                "\r\n\r\n" + std::string(row.body);
    pipeline += request;
    expected.insert(expected.end(), row.notes, "request " + id);
    ids.clear();
    talk(connect(), request);
    pass(1s);
    EXPECT_EQ(ids, Ids(row.notes, "request " + id)) << row.line;
    EXPECT_EQ(current_id(), "none");
  }
  ids.clear();
  talk(connect(), pipeline);
  pass(3s);
  EXPECT_EQ(ids, expected);
}

TEST_F(RequestTraceTest, MiddlewareRunsWithTheTraceOfItsRequest) {
  Ids ids;
  routes_.use([&ids](Request& request, Next next) -> Task<Response> {
    return note_in_middleware(request, next, &ids);
  });
  routes_.trust_id_header("X-Id");
  serve();
  for (const std::string path : {"/now", "/later", "/nowhere"}) {
    ids.clear();
    talk(connect(), "GET " + path + " HTTP/1.1\r\nHost: a\r\nX-Id: " + path + "\r\n\r\n");
    pass(1s);
    EXPECT_EQ(ids, Ids(2, "request " + path));
  }
}

}  // namespace
}  // namespace weir::http::request_trace_test
