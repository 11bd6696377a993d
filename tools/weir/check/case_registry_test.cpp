// Tests of the cases that are built in.
#include "tools/weir/check/case_registry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace weir::check::case_registry_test {
namespace {

TEST(CaseRegistry, EveryCaseHasAUniqueNameARuleAndAReason) {
  const CaseRegistry registry;
  std::set<std::string> names;
  for (const Case& each : registry.cases()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    ASSERT_NE(each.rule, nullptr) << each.name;
    EXPECT_NE(each.why, "") << each.name;
    EXPECT_EQ(each.script == nullptr, !each.expect.empty()) << each.name;
    EXPECT_EQ(each.also.empty() && each.lenient.empty(), each.note.empty()) << each.name;
  }
  EXPECT_GT(registry.cases().size(), 680U);
}

TEST(CaseRegistry, EveryExpectationIsAKnownWordOrStatus) {
  const std::set<std::string> words{"200", "400", "100", "wait", "closeok"};
  const CaseRegistry registry;
  for (const Case& each : registry.cases()) {
    for (const auto* const list : {&each.expect, &each.also, &each.lenient}) {
      for (const std::string& expected : *list) {
        const bool status = expected.size() == 3 && expected[0] >= '4' && expected[0] <= '5';
        EXPECT_TRUE(status || words.contains(expected)) << each.name << " " << expected;
      }
    }
  }
}

TEST(CaseRegistry, ReadsBytesFromTheFiles) {
  const CaseRegistry registry;
  const auto bytes_of = [&registry](std::string_view name) {
    const auto found = std::ranges::find(registry.cases(), name, &Case::name);
    return found == registry.cases().end() ? std::string("missing") : found->bytes;
  };
  EXPECT_EQ(bytes_of("header-09"), "GET / HTTP/1.1\r\nHost: a.test\r\nX: caf\xe9\r\n\r\n");
  EXPECT_EQ(bytes_of("request-line-11"),
            std::string("G\0T / HTTP/1.1\r\nHost: a.test\r\n\r\n", 32));
  EXPECT_EQ(bytes_of("rule-04-74"),
            "GET /" + std::string(8000, 'a') + " HTTP/1.1\r\nHost: a.test\r\n\r\n");
  EXPECT_EQ(bytes_of("rule-06-28"), "missing") << "it tests a limit of Weir";
}

TEST(CaseRegistry, SelectsCasesByNameBeginningAndCategory) {
  const CaseRegistry registry;
  const auto count = [&registry](std::string_view selector) {
    return std::ranges::count_if(registry.cases(),
                                 [&](const Case& each) { return is_selected(each, selector); });
  };
  EXPECT_EQ(count("rule-01-01"), 1);
  EXPECT_EQ(count("slow/head-bytes"), 1);
  EXPECT_EQ(count("slow/head"), 2);
  EXPECT_EQ(count("slow"), 12);
  EXPECT_EQ(count("rule-01"), 25);
  EXPECT_EQ(count("line-ends"), 25);
  EXPECT_EQ(count("rule-0"), 0) << "a beginning ends before a hyphen";
  EXPECT_EQ(count(""), 0);
  EXPECT_EQ(registry.rule("line-ends")->number, 1U);
  EXPECT_EQ(registry.rule("manners"), nullptr);
}

TEST(CaseRegistry, HoldsTheScriptsInAFixedOrderAfterTheBytes) {
  const CaseRegistry registry;
  std::string scripts;
  bool has_script = false;
  for (const Case& each : registry.cases()) {
    EXPECT_GE(each.script != nullptr, has_script) << each.name;
    has_script = each.script != nullptr;
    if (!has_script) continue;
    EXPECT_TRUE(each.name.starts_with(each.rule->name + "/")) << each.name;
    const std::set<std::string> tested_elsewhere{"contents", "tls", "http2", "websocket", "bodies"};
    if (tested_elsewhere.contains(each.rule->name)) continue;
    scripts += each.name + ": " + each.why + "\n";
  }
  EXPECT_EQ(scripts, R"(connection/pipelining: 64 pipelined requests of two kinds
connection/keep-alive: a second request on the same connection
connection/close: an answer, and the server closes
connection/close-of-1.0: an answer to 1.0, and the server closes
answers/head: HEAD, followed by a GET
answers/head-length: HEAD compared with GET
answers/not-modified: a false condition, followed by a GET
answers/no-content: OPTIONS, followed by a GET
answers/date: the headers of an answer
answers/trace: TRACE
answers/splitting: line ends in targets that may be echoed
expect/continue: the body comes after the 100
answers/head-fields: the fields of HEAD and GET
answers/head-fields-gzip: the fields of HEAD and GET, with gzip
answers/not-modified-fields: the fields of 304 and 200
answers/not-modified-fields-gzip: the fields of 304 and 200, with gzip
answers/tags-of-codings: the ETags of a page and of its compressed form
answers/condition-repeated: two dates in If-Unmodified-Since
host/trailing-dot: a Host whose name ends with a dot
answers/trace-of-no-hop: TRACE with Max-Forwards: 0
method/query: QUERY with a body, which is safe and idempotent
method/propfind: PROPFIND of WebDAV with a body
method/purge: PURGE with a body
limits/target: a target of 4 MiB
limits/header-bytes: a header of 4 MiB
limits/header-count: 700,000 headers
limits/lines-101: 101 header lines
limits/lines-1000: 1,000 header lines
limits/upload: a body of 16 MiB, whose client reads nothing before its end
limits/upload-chunked: the same in chunks
limits/body: a body of 1 TiB is announced
limits/chunk-extensions: 4 MiB of chunk extensions
limits/trailers: 4 MiB of trailers
limits/empty-lines: 4 MiB of empty lines before a request
limits/gzip-empty-blocks: bodies of 200,000 stored blocks without data
limits/gzip-dynamic-blocks: bodies of blocks with codes and without data
limits/gzip-empty-members: bodies of 50,000 gzip members without data
slow/head-bytes: a header's value, byte by byte
slow/head-lines: one header after the other
slow/body: a body, byte by byte
slow/chunks: chunks of one byte
slow/reader: requests whose responses are not read
slow/idle: a connection without a request
slow/idle-after-an-answer: no request after a response
slow/half-close: a request, then the end of sending
slow/half-a-head: half a head, then the end of sending
slow/vanishing: 20 clients that disconnect in the middle of a request
slow/crowd: 100 clients that have sent half a head
slow/crowd-gzip: 160 clients that are silent in a compressed upload
)");
}

}  // namespace
}  // namespace weir::check::case_registry_test
