// Describes the server under test and the outcome of one connection to it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weir/check/response_parser.hpp"
#include "weir/base/time.hpp"
#include "weir/os/address.hpp"

namespace weir::tls {
class Connector;
}

namespace weir::check {

/// The response that a correct request gets.
struct Baseline {
  int status = 0;
  std::string body;
};

struct CheckTarget {
  Endpoint endpoint;
  std::string authority;  ///< value of the Host header
  std::string host;       ///< name or address for the TLS handshake, without brackets
  /// Performs the TLS handshakes, and outlives the target; nullptr: the server speaks plain HTTP.
  tls::Connector* tls = nullptr;
  tls::Connector* tls_http2 = nullptr;  ///< the same, and offers HTTP/2 by ALPN
  bool http2_only = false;              ///< true: the server does not answer HTTP/1.1
  std::string path = "/";
  std::string post_path = "/";
  std::string websocket_path;  ///< empty: none is known
  std::string echo_path;       ///< path that returns the body of any method; empty: none is known
  std::string headers;         ///< header lines, with their line ends, of each case of `contents`
  Duration timeout = std::chrono::seconds(5);  ///< limit for a response
  /// Limit until the server must cut off a slow client.
  Duration slow_timeout = std::chrono::seconds(20);
  /// Limit until the server must close a silent connection.
  Duration idle_timeout = std::chrono::seconds(20);
  bool idle_must_close = false;  ///< true: a silent connection that stays open is a failure
  bool lenient = false;          ///< true: behaviour that the RFC allows passes
  /// Returns the bytes that the server holds, if they are known; empty: they are never known.
  std::function<std::optional<std::uint64_t>()> memory;
  std::uint64_t memory_max = std::uint64_t{32} << 20U;  ///< bytes that an attack may add
  /// Returns the processor time of the server, if it is known; empty: it is never known.
  std::function<std::optional<Duration>()> processor_time;
  /// Time by which an attack may delay the answers to other clients.
  Duration latency_max = std::chrono::milliseconds(200);

  Baseline get;            ///< response to a GET of `path`
  Baseline post;           ///< response to a POST of five bytes to `post_path`
  std::string connection;  ///< TLS version and cipher suite of that GET; empty: plain
};

/// Returns a GET request for `request_target`, or for the target's path if that is empty.
/// `fields` are header lines with their line ends.
std::string get_request(const CheckTarget& target, std::string_view fields = {},
                        std::string_view request_target = {});
/// Returns the head of a POST to the target's `post_path`. `fields` are as above.
std::string post_head(const CheckTarget& target, std::string_view fields);

/// The outcome of one connection.
struct Outcome {
  std::vector<Response> responses;  ///< responses received, including interim ones
  std::size_t final_count = 0;      ///< number of complete final responses
  bool interim = false;
  bool closed_by_server = false;  ///< close by the server before this side had ended sending
  bool reset = false;
  bool truncated = false;      ///< close by the server without the close_notify of TLS
  std::string tls;             ///< TLS version and cipher suite; empty: plain
  std::string protocol_error;  ///< error of ResponseParser::protocol_error()
  std::string connect_error;   ///< reason for a failed connect

  /// Returns the first complete final response, or nullptr if none came.
  const Response* first() const noexcept;
};

/// Describes an outcome in words: "200, kept open", "100, 200 × 3, closed", "closed without an
/// answer", "no answer".
std::string describe(const Outcome& outcome);

enum class VerdictKind : std::uint8_t { passed, failed, not_applicable };

struct Verdict {
  VerdictKind kind = VerdictKind::passed;
  std::string sent;      ///< bytes as sent, not escaped; empty: the bytes of the case
  std::string expected;  ///< expected behaviour in words
  std::string actual;    ///< actual behaviour in words
};

Verdict passed(std::string expected, std::string actual);
Verdict failed(std::string expected, std::string actual);
Verdict not_applicable(std::string expected, std::string actual);
/// Returns `verdict` with the bytes that were sent, of which it keeps the first 1,000.
Verdict with_sent(Verdict verdict, std::string_view bytes);
/// Returns the verdict on behaviour that the RFC allows, although a strict server avoids it.
Verdict lenient_verdict(const CheckTarget& target, std::string expected, std::string actual);

}  // namespace weir::check
