// The access log: one line for each request, when its response has been sent.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/time.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/log/logger.hpp"

namespace weir::http {

/// The format of a line of the access log. No byte of a client can end a line or a field: control
/// characters, quotes and backslashes are escaped.
enum class AccessLogFormat : std::uint8_t {
  common,    ///< the Common Log Format of web servers
  combined,  ///< the same with Referer and User-Agent
  json,      ///< one JSON object, with the route, the duration in seconds and the id of the request
};

/// AccessLogOptions describes the lines.
struct AccessLogOptions {
  AccessLogFormat format = AccessLogFormat::json;
  /// Returns false for a request that gets no line, such as one of a load balancer.
  std::function<bool(const Request& request, const SentResponse& sent)> filter = {};
};

/// The facts of a request that has ended.
struct AccessRecord {
  WallTime time;          ///< the end of the request
  Duration duration;      ///< from the first filter to the end of the response
  std::string peer;       ///< the address of the client without its port; see client_address()
  std::string id;         ///< see Request::id()
  std::string_view user;  ///< of basic_auth(), bearer_auth() or jwt_auth(); empty if there is none
  std::string_view method;
  std::string_view target;
  std::string_view version;  ///< "HTTP/1.1"
  std::string_view route;    ///< the pattern of the route; empty if the router has answered
  std::string_view referer;
  std::string_view user_agent;
  int status = 0;
  std::uint64_t bytes = 0;  ///< of the body
  bool complete = false;    ///< false if the response was cut off
};

/// Returns the line of the record, without a line end.
std::string access_line(const AccessRecord& record, AccessLogFormat format);

/// The middleware that access_log() makes. It belongs outside of all other middleware except
/// trusted_proxies(). It sees all requests that have a head: also those that the router answers,
/// and those whose client leaves. A request whose head is malformed has no line; ServerCounters
/// count it.
/// Threads: any.
class AccessLog {
 public:
  using Write = std::function<void(const AccessRecord& record)>;
  AccessLog(Write write, AccessLogOptions options)
      : target_(std::make_shared<const Target>(std::move(write), std::move(options))) {}

  std::optional<Response> before(Request& request) const;
  void after(Request& request, Response& response) const;

 private:
  struct Target {
    Target(Write function, AccessLogOptions of)
        : write(std::move(function)), options(std::move(of)) {}
    Write write;
    AccessLogOptions options;
  };
  void observe(Request& request) const;

  std::shared_ptr<const Target> target_;
};

/// Returns middleware that passes each line to `write`, which must not wait: it is called on the
/// core of the request.
AccessLog access_log(std::function<void(std::string_view line)> write,
                     AccessLogOptions options = {});
/// Returns middleware that writes a record "request" with the facts as fields to the logger. The
/// format of the options has no effect; the sink of the logger has its own. A text of the client
/// keeps at most its first 256 bytes, and the target what the record then has room for.
/// Lifetime: the LogService of the logger outlives the servers.
AccessLog access_log(Logger logger, AccessLogOptions options = {});

}  // namespace weir::http
