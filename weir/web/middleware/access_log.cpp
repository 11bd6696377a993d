#include "weir/web/middleware/access_log.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <tuple>

#include "weir/base/text/detail/printable.hpp"
#include "weir/http/message/detail/date.hpp"
#include "weir/json/detail/codec_object.hpp"
#include "weir/json/write.hpp"
#include "weir/log/sink.hpp"
#include "weir/loop/loop.hpp"
#include "weir/os/ip_range.hpp"
#include "weir/web/auth/authenticated_user.hpp"
#include "weir/web/auth/json_web_token.hpp"
#include "weir/web/clients/client_address.hpp"

namespace weir::http {
namespace {

/// Marks a request that has its line already.
struct Observed {};

/// The members of a line in JSON. Empty members are not written.
struct JsonLine {
  std::string time;
  std::string_view peer;
  std::optional<std::string_view> user;
  std::string_view method;
  std::string_view target;
  std::string_view version;
  std::optional<std::string_view> route;
  int status;
  std::uint64_t bytes;
  double duration;
  std::optional<std::string_view> id;
  std::optional<std::string_view> referer;
  std::optional<std::string_view> user_agent;
  std::optional<bool> cut;
};

std::optional<std::string_view> unless_empty(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

std::string_view version_text(Version version) noexcept {
  if (version == Version::http_2) return "HTTP/2.0";
  return version == Version::http_1_0 ? "HTTP/1.0" : "HTTP/1.1";
}

/// Returns the address without its port. An IPv4 client of an IPv6 socket has its IPv4 address.
std::string peer_text(const os::Address& address) {
  const auto bytes = os::ip_bytes(address);
  return bytes ? os::ip_text(*bytes) : address.to_string();
}

/// Appends a field of a client. Bytes that could end the field or the line are written as \xNN.
void append_escaped(std::string& out, std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte >= 0x20 && byte < 0x7f && each != '"' && each != '\\') {
      out += each;
    } else {
      out += "\\x";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
}
void append_field(std::string& out, std::string_view text) {
  out += " \"";
  text.empty() ? out.append("-") : (append_escaped(out, text), out);
  out += '"';
}

/// Appends " [06/Nov/1994:08:49:37 +0000]".
void append_clf_time(std::string& out, WallTime time) {
  const Date date(time);
  const std::string_view text = date.text();  // "Sun, 06 Nov 1994 08:49:37 GMT"
  out.append(" [").append(text.substr(5, 2)).append("/").append(text.substr(8, 3)).append("/");
  out.append(text.substr(12, 4)).append(":").append(text.substr(17, 8)).append(" +0000]");
}

std::string json_line(const AccessRecord& record) {
  JsonLine line;
  append_time(line.time, record.time);
  line.peer = record.peer;
  line.user = unless_empty(record.user);
  line.method = record.method;
  line.target = record.target;
  line.version = record.version;
  line.route = unless_empty(record.route);
  line.status = record.status;
  line.bytes = record.bytes;
  line.duration = std::chrono::duration<double>(record.duration).count();
  line.id = unless_empty(record.id);
  line.referer = unless_empty(record.referer);
  line.user_agent = unless_empty(record.user_agent);
  if (!record.complete) line.cut = true;
  return to_printable_json(json::write(line));
}

std::string_view user_of(const Request& request) noexcept {
  if (const auto* const user = request.get<AuthenticatedUser>()) return user->name;
  const auto* const claims = request.get<JwtClaims>();
  return claims != nullptr ? std::string_view(claims->subject) : std::string_view();
}

/// Appends a field of the common format that has no quotes: a space would end it.
void append_word(std::string& out, std::string_view text) {
  if (text.empty()) out += '-';
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    append_escaped(out, text.substr(0, space));
    if (space < text.size()) out += "\\x20";
    text.remove_prefix(std::min(space + 1, text.size()));
  }
}

AccessRecord record_of(const Request& request, const SentResponse& sent, Duration duration) {
  AccessRecord record;
  Loop* const loop = request.loop();
  if (loop != nullptr) record.time = loop->platform().wall_time();
  record.duration = duration;
  record.peer = peer_text(client_address(request));
  record.id = request.id();
  record.user = user_of(request);
  record.method = request.method_text();
  record.target = request.head().target();
  record.version = version_text(request.version());
  record.route = request.route();
  record.referer = request.header("Referer").value_or("");
  record.user_agent = request.header("User-Agent").value_or("");
  record.status = code_of(sent.status);
  record.bytes = sent.body_bytes;
  record.complete = sent.complete;
  return record;
}

}  // namespace

std::string access_line(const AccessRecord& record, AccessLogFormat format) {
  if (format == AccessLogFormat::json) return json_line(record);
  std::string line;
  append_word(line, record.peer);  // a client may give its Unix socket any name
  line += " - ";
  append_word(line, record.user);
  append_clf_time(line, record.time);
  line += " \"";
  append_escaped(line, record.method);
  line += ' ';
  append_escaped(line, record.target);
  line.append(" ").append(record.version).append("\" ").append(std::to_string(record.status));
  line.append(" ").append(record.bytes == 0 ? "-" : std::to_string(record.bytes));
  if (format == AccessLogFormat::combined) {
    append_field(line, record.referer);
    append_field(line, record.user_agent);
  }
  return line;
}

std::optional<Response> AccessLog::before(Request& request) const {
  observe(request);
  return std::nullopt;
}

void AccessLog::after(Request& request, Response&) const {
  // The server has rejected the request before its filters were called.
  if (request.get<Observed>() == nullptr) observe(request);
}

void AccessLog::observe(Request& request) const {
  request.set(Observed());
  std::ignore = request.peer_address();  // the connection keeps it, also when the client resets it
  Loop* const loop = request.loop();
  const Instant start = loop != nullptr ? loop->platform().now() : Instant();
  request.on_end([target = target_, start](Request& ended, const SentResponse& sent) {
    if (target->options.filter && !target->options.filter(ended, sent)) return;
    Loop* const here = ended.loop();
    const Instant now = here != nullptr ? here->platform().now() : start;
    target->write(record_of(ended, sent, now - start));
  });
}

AccessLog access_log(std::function<void(std::string_view line)> write, AccessLogOptions options) {
  const AccessLogFormat format = options.format;
  return {[write = std::move(write), format](const AccessRecord& record) {
            write(access_line(record, format));
          },
          std::move(options)};
}

namespace {

/// Returns the part of a text of the client that a record has.
std::string_view begin_of(std::string_view text) noexcept {
  constexpr std::size_t most = 256;
  return text.substr(0, most);
}

}  // namespace

AccessLog access_log(Logger logger, AccessLogOptions options) {
  return {[logger = std::move(logger)](const AccessRecord& record) {
            // A record drops the fields behind a text that fills it. The facts of the server come
            // first, and the only text of the client without a bound comes last.
            logger.info("request", field("status", record.status), field("bytes", record.bytes),
                        field("duration", record.duration), field("complete", record.complete),
                        field("route", record.route), field("peer", record.peer),
                        field("id", begin_of(record.id)), field("user", begin_of(record.user)),
                        field("method", begin_of(record.method)),
                        field("user_agent", begin_of(record.user_agent)),
                        field("target", record.target));
          },
          std::move(options)};
}

}  // namespace weir::http
