// Middleware that decompresses the bodies of requests.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "weir/base/time.hpp"
#include "weir/compression/decompressor.hpp"
#include "weir/http/matching/core_demands.hpp"
#include "weir/http/matching/middleware.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// The limits of decompress_requests(). Each comment ends with the answer to a request beyond the
/// limit.
struct DecompressRequestLimits {
  /// Limits of one body; 413. The limit of the route (RouteOptions::body_max) is for the bytes that
  /// arrive, output_max for those that the handler reads.
  compression::DecompressLimits body = {.output_max = 1024 * 1024, .window_max = 1024 * 1024};
  /// Requests on one core at the same time that are decompressed, from their first bytes to the end
  /// of the body; others wait. One whose handler reads more than 16 KiB as a whole counts until its
  /// response is sent, however slowly the client reads. Each holds at most
  /// compression::decompressor_bytes_max(), 16 KiB, and three times output_max if it is read as a
  /// whole. Clients share them by address; see client_address(). If an address or a connection with
  /// fewer ones waits, a slow upload ends; 408. It is one that has waited for its client for more
  /// than a second, at less than 16 KiB per second.
  std::size_t concurrency_max = 64;
  /// Requests that wait on a core; 503 for the newest one of the address with the most of them.
  std::size_t waiting_max = 1024;
  /// Time for which a request waits; 503. Addresses are served in turn, and so are the connections
  /// of an address.
  Duration queue_timeout = std::chrono::seconds(5);
};

/// The middleware that decompress_requests() returns.
/// Threads: any core.
class DecompressRequests {
 public:
  explicit DecompressRequests(DecompressRequestLimits limits) noexcept : limits_(limits) {}
  /// Cancel: passed on to the handler.
  Task<Response> operator()(Request& request, Next next) const;
  /// Returns the memory of the requests of a core that are decompressed.
  CoreDemands demands(Loop& loop) const;

 private:
  DecompressRequestLimits limits_;
};

/// Returns middleware that decompresses the bodies of requests for the handlers behind it:
/// `router.use(http::decompress_requests())`. A request with a coding that the build lacks, or with
/// several codings, is answered with 415 and an Accept-Encoding header (RFC 9110 §15.5.16). The
/// reads of a body that is corrupt, incomplete or followed by more bytes fail with a
/// compression::DecompressError; to_status() is 400 for these and 413 for a limit. The headers of
/// the request stay as the client sent them: Request::has_decoded_body() and Request::body_length()
/// tell what the body is. A reverse proxy passes the decoded body on, without the headers that
/// describe the coding; if the request has "Cache-Control: no-transform", it passes the body on as
/// it arrives. A window of zstd above window_max is a limit too: raise it to 8 MiB for
/// clients that compress at high levels. A request without a body is passed on as it is.
DecompressRequests decompress_requests(DecompressRequestLimits limits = {});

}  // namespace weir::http
