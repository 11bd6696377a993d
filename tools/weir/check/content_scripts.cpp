// Cases with forms, JSON texts, queries and headers that a handler cannot use.
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/check_connection.hpp"
#include "tools/weir/check/scripts.hpp"

namespace weir::check {
namespace {

constexpr std::string_view form_type = "application/x-www-form-urlencoded";
constexpr std::string_view json_type = "application/json";
// Statuses of a server that has not read the contents: a login, a missing route, another type.
constexpr std::array unread{401, 403, 404, 405, 415, 501};

std::string repeated(std::string_view piece, std::size_t count) {
  std::string text;
  text.reserve(piece.size() * count);
  while (count-- > 0) text += piece;
  return text;
}

Task<Verdict> check_request(const CheckTarget& target, std::string sent) {
  const std::string expected = "an answer without a failure of the server (5xx)";
  CheckConnection connection(target);
  StopCondition until;
  until.final_count = 1;
  until.wait_timeout = target.timeout;
  const bool opened = co_await connection.open();
  if (opened) co_await connection.send_and_receive(sent, until);
  const Outcome outcome = connection.outcome();
  const std::string actual = describe(outcome);
  const Response* const first = outcome.first();
  Verdict verdict;
  if (first == nullptr || !outcome.connect_error.empty() || !outcome.protocol_error.empty()) {
    verdict = failed(expected, actual);
  } else if (std::ranges::find(unread, first->status) != unread.end()) {
    verdict = not_applicable(expected, actual + ": the path does not read it");
  } else if (first->status >= 500) {
    verdict = failed(expected, actual + ": the input makes the server fail");
  } else {
    verdict = passed(expected, actual);
  }
  verdict.sent = std::move(sent);
  co_return verdict;
}

Task<Verdict> check_body(const CheckTarget& target, std::string_view type, std::string_view body) {
  std::string fields = target.headers;
  if (!type.empty()) fields.append("Content-Type: ").append(type).append("\r\n");
  fields += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return check_request(target, post_head(target, fields).append(body));
}

Task<Verdict> check_form(const CheckTarget& target, const Case& test_case) {
  return check_body(target, form_type, test_case.bytes);
}

Task<Verdict> check_json(const CheckTarget& target, const Case& test_case) {
  return check_body(target, json_type, test_case.bytes);
}

/// The bytes of the case are a media type.
Task<Verdict> check_type(const CheckTarget& target, const Case& test_case) {
  return check_body(target, test_case.bytes, "a=b");
}

Task<Verdict> check_query(const CheckTarget& target, const Case& test_case) {
  const char join = target.path.find('?') == target.path.npos ? '?' : '&';
  return check_request(target,
                       get_request(target, target.headers, target.path + join + test_case.bytes));
}

/// The bytes of the case are the lines of headers.
Task<Verdict> check_headers(const CheckTarget& target, const Case& test_case) {
  return check_request(target, get_request(target, target.headers + test_case.bytes));
}

void add_forms(CaseRegistry& registry) {
  const auto add = [&](std::string_view name, std::string_view why, std::string bytes) {
    registry.add("contents", "form-" + std::string(name), why, check_form, std::move(bytes));
  };
  add("percent", "a form with a percent sign at its end", "a=b&c=%");
  add("half-escape", "a form with half an escape", "a=%4");
  add("bad-escape", "a form with an escape that is not hexadecimal", "a=%zz");
  add("nul", "a form with an escaped NUL", "a=%00b");
  add("control", "a form with control characters", std::string("a=\x01\x7f\r\n\0b", 8));
  add("line-ends", "line ends in usual fields",
      "name=a%0d%0aX:%20b&user=a%0d%0aX:%20b&username=a%0d%0ab&email=a%0a@b&password=%0d&text=%0a");
  add("utf8", "a form with escapes that are not UTF-8", "a=%ff%fe&%c0%af=b");
  add("surrogate", "a form with an escaped surrogate", "a=%ed%a0%80");
  add("empty", "an empty form", "");
  add("separators", "a form of separators", "&&=&=&;;&==&");
  add("fields", "a form of 20,000 fields", repeated("a&", 20'000));
  add("same-name", "a form with one name 5,000 times", repeated("a=1&", 5'000));
  add("long-name", "a name of 60,000 bytes", std::string(60'000, 'n') + "=1");
  add("long-value", "a value of 20,000 escapes", "a=" + repeated("%26", 20'000));
  add("brackets", "a name with 5,000 nested brackets", "a" + repeated("[b]", 5'000) + "=1");
  add("index", "a name with a large index", "a[4294967295]=1&b[99999999999999999999]=2");
  add("prototype", "a form that names a prototype",
      "__proto__[x]=1&constructor[prototype][x]=1&__proto__=1");
}

void add_texts(CaseRegistry& registry) {
  const auto add = [&](std::string_view name, std::string_view why, std::string bytes) {
    registry.add("contents", "json-" + std::string(name), why, check_json, std::move(bytes));
  };
  add("empty", "an empty JSON text", "");
  add("arrays", "30,000 nested arrays", std::string(30'000, '['));
  add("objects", "10,000 nested objects", repeated("{\"a\":", 10'000));
  add("closed-arrays", "10,000 nested arrays, each closed",
      std::string(10'000, '[') + std::string(10'000, ']'));
  add("unfinished", "an object without an end", "{\"a\": \"b");
  add("trailing", "bytes after the object", "{\"a\": 1} x");
  add("large-number", "a number beyond a double", "{\"a\": 1e999, \"b\": -1e999}");
  add("digits", "a number of 30,000 digits", "{\"a\": " + std::string(30'000, '9') + "}");
  add("same-name", "one name twice", "{\"a\": 1, \"a\": 2}");
  add("utf8", "a string that is not UTF-8", "{\"a\": \"\xff\xc0\xaf\"}");
  add("surrogate", "a lone surrogate", "{\"\\ud800\": \"\\udc00\\ud800\"}");
  add("nul", "a name and a string with NUL", "{\"a\\u0000\": \"\\u0000\"}");
  add("byte-order-mark", "a byte order mark before the object", "\xef\xbb\xbf{}");
  add("null", "null instead of an object", "null");
  add("wrong-types", "other types than those of a field",
      "{\"text\": [], \"id\": {}, \"name\": false, \"password\": 1}");
  add("prototype", "an object that names a prototype",
      "{\"__proto__\": {\"x\": 1}, \"constructor\": {\"prototype\": {\"x\": 1}}}");
  add("names", "10,000 unknown names", "{" + repeated("\"a\":1,", 10'000) + "\"b\":1}");
}

void add_types(CaseRegistry& registry) {
  const auto add = [&](std::string_view name, std::string_view why, std::string bytes) {
    registry.add("contents", "type-" + std::string(name), why, check_type, std::move(bytes));
  };
  add("none", "a body without a media type", "");
  add("malformed", "a malformed media type", "application/;;=,");
  add("charset", "an unknown charset", std::string(form_type) + "; charset=utf-7");
  add("quoted", "a quoted parameter without an end", std::string(json_type) + "; charset=\"utf-8");
  add("multipart", "a multipart body without a boundary", "multipart/form-data");
  add("long", "a media type of 4,000 bytes", "text/" + std::string(4'000, 'a'));
}

void add_queries(CaseRegistry& registry) {
  const auto add = [&](std::string_view name, std::string_view why, std::string bytes) {
    registry.add("contents", "query-" + std::string(name), why, check_query, std::move(bytes));
  };
  add("bad-escape", "a query with bad escapes", "a=%&b=%4&c=%zz");
  add("nul", "a query with an escaped NUL", "a=%00b&%00=c");
  add("utf8", "a query with escapes that are not UTF-8", "a=%ff%fe&%c0%af=b");
  add("separators", "a query of separators", "&&=&=&;;&==&?");
  add("fields", "a query of 1,000 fields", repeated("a=1&", 1'000));
  add("brackets", "a name with 500 nested brackets", "a" + repeated("%5Bb%5D", 500) + "=1");
  add("prototype", "a query that names a prototype", "__proto__%5Bx%5D=1&__proto__=1");
}

void add_headers(CaseRegistry& registry) {
  const auto add = [&](std::string_view name, std::string_view why, std::string bytes) {
    registry.add("contents", "header-" + std::string(name), why, check_headers, std::move(bytes));
  };
  add("cookie", "malformed cookies", "Cookie: =;;; a; =b; \"c\"=\"d; e=\"\r\n");
  add("cookies", "1,000 cookies", "Cookie: " + repeated("a=1; ", 1'000) + "b=2\r\n");
  add("cookie-lines", "20 lines of cookies", repeated("Cookie: a=1\r\n", 20));
  add("basic", "credentials that are not base64", "Authorization: Basic !!!=\r\n");
  add("bearer", "a scheme without credentials", "Authorization: Bearer\r\n");
  add("date", "a date that does not exist", "If-Modified-Since: Mon, 99 Foo 9999 99:99:99 GMT\r\n");
  add("range", "ranges that overlap and overflow",
      "Range: bytes=" + repeated("0-,", 100) + "18446744073709551616-\r\n");
  add("accept", "a malformed Accept", "Accept: */;q=x, ;;, text/html;q=9\r\n");
  add("encoding", "an unknown content coding", "Content-Encoding: zstd, br, x\r\n");
  add("forwarded", "malformed addresses of proxies",
      "X-Forwarded-For: ::1, 999.1.1.1, unknown, \"\r\nForwarded: for=\"[::\r\n");
}

}  // namespace

void add_content_scripts(CaseRegistry& registry) {
  add_forms(registry);
  add_texts(registry);
  add_types(registry);
  add_queries(registry);
  add_headers(registry);
}

}  // namespace weir::check
