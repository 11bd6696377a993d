// The limits and the options of an HTTP client, with their defaults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/compression/decompressor.hpp"
#include "weir/http/detail/h1/response_parser.hpp"
#include "weir/http/detail/h2/session.hpp"
#include "weir/http/syntax/url.hpp"
#include "weir/net/dns/resolver.hpp"

namespace weir::tls {
class Client;
}

namespace weir::http {

class ClientRequest;
class ClientResponse;
class CookieJar;

/// The limits of a client. Each comment ends with the error of a request beyond the limit.
struct ClientLimits {
  ResponseLimits response = {};  ///< sizes of heads and chunks; ClientError::bad_response
  /// Time for the name look-up, the connection and the TLS handshake. It includes the wait for a
  /// connection that another request opens; connect_timed_out.
  Duration connect_timeout = std::chrono::seconds(5);
  /// Time from the end of the request to the end of the final response's head; head_timed_out.
  Duration head_timeout = std::chrono::seconds(30);
  /// Time of each write of the request (at most 256 KiB of a text), and of each wait for bytes of
  /// the response's body; body_timed_out.
  Duration body_timeout = std::chrono::seconds(30);
  /// Time from the call of send() to the end of the response's body, with the retry and the
  /// redirects; timed_out.
  Duration total_timeout = Duration::max();
  /// Bytes of a body that ClientResponse::body() and json() collect; body_too_large.
  std::uint64_t body_max = 16 * 1024 * 1024;
  unsigned redirects_max = 10;  ///< redirects of one request, 0 to follow none; too_many_redirects

  std::size_t connections_per_origin_max = 64;  ///< connections in use and idle; the request waits
  std::size_t connections_max = 1024;           ///< connections of all origins; the request waits
  std::size_t waiting_max = 4096;               ///< requests that wait for a connection; queue_full
  /// Time for which a request waits for a connection, in the order of arrival; queue_timed_out. The
  /// time in which another request opens the first connection counts for connect_timeout instead.
  Duration queue_timeout = std::chrono::seconds(5);
  /// Time for which an idle connection stays open. The default is below the 5 s of common servers,
  /// so that the client closes first.
  Duration idle_timeout = std::chrono::seconds(4);
  /// Age above which a connection is not used again. A changed address of a name is used after this
  /// time at the latest.
  Duration age_max = std::chrono::minutes(5);

  /// Limits of a connection of HTTP/2. `streams_max` is the number of its requests at a time; more
  /// requests use another connection, or wait. The window of the connection has room for those of
  /// all streams and one more, so that a response that the program does not read delays no other.
  H2Limits http2 = {.connection_window = 129 * 64 * 1024, .work = {}};
  /// Time for which a server of HTTP/2 with an open request or WebSocket may be silent. The client
  /// then sends a PING, and closes the connection if nothing arrives within ping_timeout;
  /// connection_lost.
  Duration ping_interval = std::chrono::seconds(15);
  Duration ping_timeout = std::chrono::seconds(5);
};

/// An HTTP proxy. The client sends it requests for http URLs with the whole URL (RFC 9112 §3.2.2).
struct ProxyOptions {
  /// Scheme, host and port of the proxy; nullopt: no proxy. The client offers only HTTP/1.1 to
  /// a proxy at an https URL, whatever the protocols of ClientOptions::tls are.
  std::optional<Url> url = {};
  /// The value of the Proxy-Authorization header, such as "Basic dXNlcjpzZWNyZXQ=". Only the proxy
  /// receives it. A value that no header can hold fails each use of the
  /// proxy with Errc::bad_configuration.
  std::string authorization = {};
  /// True to ask the proxy for a tunnel to each origin by CONNECT, also for http URLs. The proxy
  /// then sees no request.
  bool tunnel = false;
  /// Hosts that the client connects to without the proxy. Each name includes the hosts below it;
  /// "*" is all hosts. Letter case, a dot at the end and the form of an IP address do not count.
  std::vector<std::string> bypass = {"localhost", "127.0.0.1", "::1"};
};

/// Sees the requests of a Client; see ClientOptions::observer. A request and its redirects and
/// repetitions are one call, and so is the opening handshake of a WebSocket. It may add headers,
/// such as a traceparent, which redirects keep.
/// Threads: those of its clients. The clients of several cores may share an observer that allows
/// it.
class ClientObserver {
 public:
  /// One request from send() to the head of its response. It is destroyed without another call if
  /// the request ends with an exception.
  class Call {
   public:
    Call() = default;
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    virtual ~Call() = default;
    /// Called when the head of the final response has arrived.
    virtual void on_response(const ClientResponse& response) noexcept = 0;
    /// Called when a server has accepted a WebSocket, with true if it is a stream of HTTP/2.
    virtual void on_websocket(bool /*is_http2*/) noexcept {}
    /// Called if send() fails, or a WebSocket is not opened. The error is Errc::cancelled if the
    /// task was cancelled.
    virtual void on_error(std::error_code error) noexcept = 0;
  };

  /// Called at the start of send(), and of websocket() with a GET. It may change `request`, which
  /// may be invalid. Of a WebSocket, only its headers may be changed.
  /// Returns: the object that sees the end; nullptr if none has to.
  virtual std::unique_ptr<Call> begin(ClientRequest& request) = 0;

 protected:
  ~ClientObserver() = default;
};

/// ClientOptions sets up a Client.
struct ClientOptions {
  ClientLimits limits = {};
  /// Set to ask servers for compressed responses and to decompress them; nullopt: the client does
  /// neither. The client adds Accept-Encoding to a request that has neither Accept-Encoding nor
  /// Range, with the codings of the build among zstd, br and gzip. Such a response has no
  /// Content-Encoding, Content-Length, Accept-Ranges and digest any more. Its strong ETag becomes
  /// weak, and so does that of the 304 to a request with the weak one. The response to HEAD gets
  /// the headers of the response to GET. ClientError::bad_response for a body that is corrupt or
  /// incomplete, body_too_large for one beyond these limits. Each response that is decompressed
  /// holds up to compression::decompressor_bytes_max().
  std::optional<compression::DecompressLimits> decompression = {};
  /// The path of a Unix socket, or a name that begins with '@' in the abstract namespace. Each
  /// connection goes there, and a URL's host is only the Host header. Empty: TCP.
  std::string unix_socket = {};
  ProxyOptions proxy = {};  ///< not used with a Unix socket
  /// True to speak HTTP/2 with the servers of http URLs without asking them ("prior knowledge", RFC
  /// 9113 §3.3). A proxy without a tunnel gets HTTP/1.1.
  bool plain_http2 = false;
  /// The trusted CAs and the certificate of this client for https URLs; all cores may share it.
  /// nullptr: the CAs that the operating system trusts, and no certificate. If "h2" is among its
  /// tls::ClientOptions::protocols, a server may choose HTTP/2.
  std::shared_ptr<tls::Client> tls = {};
  dns::Resolver* resolver = nullptr;  ///< nullptr: the resolver of the core
  /// Keeps the cookies of responses for later requests, and outlives the client; nullptr: the
  /// client ignores cookies. A request with a Cookie header of its own is sent with that header.
  CookieJar* cookie_jar = nullptr;
  /// Names of headers that a redirect to another origin drops, in addition to Authorization, Cookie
  /// and Proxy-Authorization.
  std::vector<std::string> sensitive_headers = {};
  /// Sees each request that send() and websocket() send, and outlives the client; nullptr: there is
  /// none.
  ClientObserver* observer = nullptr;
};

/// Upper bounds, in bytes, of the memory of this process that the servers of one Client can make it
/// hold. They exclude the kernel's socket buffers, the requests, a CookieJar, what the program
/// keeps of the responses, and the connections of TLS: OpenSSL needs about 14 KiB for each. A
/// bound that does not fit its type is the largest number of that type.
struct ClientMemoryBound {
  std::uint64_t idle_connection;  ///< a connection that is idle
  std::uint64_t connection;       ///< a connection in use, with the longest head and body
  /// A connection of HTTP/2 with H2Limits::streams_max responses of the longest head and body.
  std::uint64_t http2_connection;
  std::uint64_t waiting_request;  ///< a request that waits for a connection
  std::uint64_t total;            ///< all of them, when all connections are in use and of HTTP/1.1
  std::uint64_t http2_total;      ///< the same for HTTP/2
  /// The session tickets of https servers on the core of the client, in addition to the totals. It
  /// is 0 without tls::ClientOptions::tickets; see tls::kept_sessions_bytes_max().
  std::uint64_t tls_sessions;
};

/// Returns the bound of a client with these limits. `body_max` and `connections_max` are the first
/// values to lower for a lower bound, and H2Limits::streams_max for HTTP/2.
ClientMemoryBound memory_bound(const ClientLimits& limits) noexcept;

}  // namespace weir::http
