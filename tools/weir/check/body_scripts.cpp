// Cases about the bodies of requests, on a path that returns them: --echo-path.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/exchange.hpp"
#include "tools/weir/check/h2_requests.hpp"
#include "tools/weir/check/h2_wire.hpp"
#include "tools/weir/check/scripts.hpp"

namespace weir::check {
namespace {

constexpr std::string_view json_body = R"({"scroll_id":"abc"})";
constexpr std::string_view gzip_text = "hello";
// "hello" in a stored block (RFC 1951, 3.2.4), with the CRC-32 and the size of the text (RFC 1952).
constexpr std::string_view gzip_body(
    "\x1f\x8b\x08\0\0\0\0\0\0\xff"
    "\x01\x05\0\xfa\xff"
    "hello"
    "\x86\xa6\x10\x36\x05\0\0\0",
    28);

/// The end of a body, as its sender says it.
enum class Framing : std::uint8_t {
  length,    ///< Content-Length
  chunks,    ///< chunked, without trailers
  trailers,  ///< chunked, with trailers
  frames,    ///< END_STREAM of HTTP/2, without content-length
};

struct BodyCase {
  std::string_view name;
  std::string_view why;
  std::string_view method;
  Framing framing;
  std::string_view fields = {};  ///< further header lines of HTTP/1.1
  std::string_view coding = {};  ///< Content-Encoding
};

constexpr std::string_view connection_names = "Connection: keep-alive, Content-Length\r\n";
constexpr std::string_view connection_coding = "Connection: keep-alive, Transfer-Encoding\r\n";

constexpr std::array body_cases{
    BodyCase{"post-chunked", "POST in chunks", "POST", Framing::chunks},
    BodyCase{"post-trailers", "POST in chunks, with trailers", "POST", Framing::trailers},
    BodyCase{"delete", "DELETE with a body", "DELETE", Framing::length},
    BodyCase{"delete-chunked", "DELETE with a body in chunks", "DELETE", Framing::chunks},
    BodyCase{"get", "GET with a body", "GET", Framing::length},
    BodyCase{"get-chunked", "GET with a body in chunks", "GET", Framing::chunks},
    BodyCase{"options", "OPTIONS with a body", "OPTIONS", Framing::length},
    BodyCase{"options-chunked", "OPTIONS with a body in chunks", "OPTIONS", Framing::chunks},
    BodyCase{"query", "QUERY, whose body is the question", "QUERY", Framing::length},
    BodyCase{"connection-length", "Connection names Content-Length", "POST", Framing::length,
             connection_names},
    BodyCase{"connection-coding", "Connection names Transfer-Encoding", "POST", Framing::chunks,
             connection_coding},
    BodyCase{"gzip", "a compressed body", "POST", Framing::length, {}, "gzip"},
    BodyCase{"gzip-chunked", "a compressed body in chunks", "POST", Framing::chunks, {}, "gzip"},
    BodyCase{"http2-post", "POST over HTTP/2 without content-length", "POST", Framing::frames},
    BodyCase{"http2-delete", "DELETE over HTTP/2 without content-length", "DELETE",
             Framing::frames},
    BodyCase{"http2-get", "GET over HTTP/2 without content-length", "GET", Framing::frames},
    BodyCase{"http2-options", "OPTIONS over HTTP/2 without content-length", "OPTIONS",
             Framing::frames},
    BodyCase{"http2-query", "QUERY over HTTP/2 without content-length", "QUERY", Framing::frames},
    BodyCase{"http2-gzip", "a compressed body over HTTP/2", "POST", Framing::frames, {}, "gzip"},
};

const BodyCase& row_of(const Case& test_case) {
  const std::string_view name = std::string_view(test_case.name).substr(sizeof("bodies"));
  const auto is_it = [name](const BodyCase& each) { return each.name == name; };
  return *std::ranges::find_if(body_cases, is_it);
}

std::string_view body_of(const BodyCase& row) {
  return row.coding.empty() ? json_body : gzip_body;
}

std::string fields_of(const BodyCase& row) {
  std::string fields(row.fields);
  fields += "Content-Type: text/plain\r\n";
  if (!row.coding.empty()) fields.append("Content-Encoding: ").append(row.coding).append("\r\n");
  return fields;
}

std::string chunk_of(std::string_view body) {
  std::array<char, 16> size{};
  std::snprintf(size.data(), size.size(), "%zx\r\n", body.size());
  return std::string(size.data()).append(body).append("\r\n");
}

std::string head_of(const CheckTarget& target, std::string_view method, std::string_view fields) {
  return std::string(method) + " " + target.echo_path + " HTTP/1.1\r\nHost: " + target.authority +
         "\r\n" + std::string(fields) + "\r\n";
}

/// Returns the request of the case over HTTP/1.1.
std::string request_of(const CheckTarget& target, const BodyCase& row) {
  const std::string_view body = body_of(row);
  std::string fields = fields_of(row);
  if (row.framing == Framing::length) {
    fields += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return head_of(target, row.method, fields).append(body);
  }
  fields += "Transfer-Encoding: chunked\r\n";
  std::string trailers;
  if (row.framing == Framing::trailers) {
    fields += "Trailer: X-Check\r\n";
    trailers = "X-Check: a\r\nX-Forwarded-For: 192.0.2.1\r\n";
  }
  return head_of(target, row.method, fields) + chunk_of(body) + "0\r\n" + trailers + "\r\n";
}

/// Returns the frames of the case. DATA comes behind the head and has no announced length.
std::string frames_of(const CheckTarget& target, const BodyCase& row) {
  std::vector<H2Field> fields = h2_get_fields(target);
  fields[0].value = row.method;
  fields[3].value = target.echo_path;
  fields.push_back({"content-type", "text/plain"});
  if (!row.coding.empty()) fields.push_back({"content-encoding", std::string(row.coding)});
  return h2_frame(http::FrameType::headers, http::FrameFlag::end_headers, 1, h2_block(fields)) +
         h2_frame(http::FrameType::data, http::FrameFlag::end_stream, 1, body_of(row));
}

constexpr std::string_view expected_answer = "the body comes back, or a refusal (4xx)";

Verdict judge(const BodyCase& row, int status, std::string_view body, std::string actual) {
  const std::string expected(expected_answer);
  const bool decoded = !row.coding.empty() && body == gzip_text;
  if (status == 404 || status == 405 || status == 501) {
    return not_applicable(expected, actual + ": the path does not have this method");
  }
  if (status >= 400 && status < 500) return passed(expected, std::move(actual));
  if (status < 200 || status > 299) return failed(expected, std::move(actual));
  if (body == body_of(row) || decoded) return passed(expected, std::move(actual));
  return failed(expected, actual + " with " + std::to_string(body.size()) + " of " +
                              std::to_string(body_of(row).size()) + " bytes, or with others");
}

/// Returns the verdict on a path that does not return bodies; nullopt: it does.
Task<std::optional<Verdict>> verdict_without_echo(const CheckTarget& target) {
  const std::string expected(expected_answer);
  if (target.echo_path.empty()) co_return not_applicable(expected, "there is no --echo-path");
  std::string sent = head_of(target, "POST", "Content-Length: 5\r\n") + "hello";
  const Exchange made = co_await exchange(target, "POST", std::move(sent), 1);
  const Response* const first = made.outcome.first();
  const std::string actual = describe(made.outcome);
  if (first == nullptr) co_return failed(expected, actual);
  if (first->status == 200 && first->body == "hello") co_return std::nullopt;
  co_return not_applicable(expected, actual + ": a POST to --echo-path does not return its body");
}

Task<Verdict> check_frames(const CheckTarget& target, const BodyCase& row) {
  const std::string expected(expected_answer);
  const std::string bytes = h2_begin() + frames_of(target, row);
  const H2Wire::Done done = [](const H2Answers& answers) {
    return answers.goaway() || answers.on(1).complete();
  };
  H2Wire wire(target);
  const bool opened = co_await wire.open();
  if (opened) co_await wire.exchange(bytes, done, target.timeout);
  if (auto verdict = wire.verdict_without_h2(expected)) co_return *std::move(verdict);
  const H2Answer& answer = wire.answers().on(1);
  co_return with_sent(judge(row, answer.status, answer.body, wire.describe()), bytes);
}

/// Sends the case, and a GET behind it: the body must end where its framing says.
Task<Verdict> check_request(const CheckTarget& target, const BodyCase& row) {
  const std::string expected(expected_answer);
  std::string sent = request_of(target, row) + get_request(target, "Connection: close\r\n");
  const Exchange made = co_await exchange(target, row.method, std::move(sent), 2);
  const Outcome& outcome = made.outcome;
  const std::string actual = describe(outcome);
  const Response* const first = outcome.first();
  if (first == nullptr || !outcome.protocol_error.empty()) {
    co_return with_sent(failed(expected, actual), made.sent);
  }
  Verdict verdict = judge(row, first->status, first->body, actual);
  const bool served =
      outcome.final_count == 2 && outcome.responses.back().status == target.get.status;
  const bool in_step = first->closes || served;
  if (verdict.kind == VerdictKind::passed && !in_step) {
    verdict = failed(expected, actual + ": the next request is not served");
  }
  co_return with_sent(std::move(verdict), made.sent);
}

Task<Verdict> check_body(const CheckTarget& target, const Case& test_case) {
  const BodyCase& row = row_of(test_case);
  auto without = co_await verdict_without_echo(target);
  if (without) co_return *std::move(without);
  if (row.framing == Framing::frames) co_return co_await check_frames(target, row);
  co_return co_await check_request(target, row);
}

}  // namespace

void add_body_scripts(CaseRegistry& registry) {
  for (const BodyCase& each : body_cases) {
    registry.add("bodies", each.name, each.why, check_body);
  }
}

}  // namespace weir::check
