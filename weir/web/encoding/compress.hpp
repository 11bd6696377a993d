// Middleware that compresses responses by negotiation.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "weir/compression/coding.hpp"
#include "weir/http/matching/core_demands.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"

namespace weir::http {

/// CompressOptions sets up compress().
struct CompressOptions {
  /// The codings in the order of preference, for clients that accept several alike. Those that the
  /// build lacks are left out. Levels above 4 cost more time than most responses are worth.
  std::vector<compression::CodingLevel> codings = {{compression::Coding::zstd, 1},
                                                   {compression::Coding::brotli, 1},
                                                   {compression::Coding::gzip, 1}};
  std::size_t size_min = 1024;  ///< bytes of the smallest body that is compressed
  /// Bytes of the largest body that is compressed in one step, about 0.2 ms for 64 KiB. A larger
  /// body is sent in pieces of 32 KiB while it is compressed; other tasks run between them. Such a
  /// response has no Content-Length.
  std::size_t whole_max = 64 * 1024;
  /// Compressors of large and streamed bodies on one core at the same time. Clients share them by
  /// address; see client_address(). Further responses are sent without a coding. Each has at most
  /// compression::compressor_bytes_max() bytes.
  std::size_t streams_max = 64;
  /// Returns true for a media type in lower case, without parameters, that is worth compressing.
  bool (*is_compressible)(std::string_view media_type) noexcept;

  CompressOptions() noexcept;
};

/// Returns an upper bound of the bytes that compress() holds on one core beside the bodies: the
/// compressors of streams, unused ones, and those of whole bodies. It is a part of
/// MemoryBoundOptions::core_bytes.
std::size_t compress_bytes_max(const CompressOptions& options) noexcept;

/// Returns true for the media types of texts: text/*, JSON, XML, JavaScript, SVG, WebAssembly,
/// fonts without compression of their own, and types that end in +json, +xml or +text. It is false
/// for text/event-stream.
bool is_compressible_type(std::string_view media_type) noexcept;

/// A handler or a middleware sets this value to send its response without a coding:
/// `request.set(http::NoCompression())`. The size of a compressed response tells if a text of the
/// request repeats a secret in the response (BREACH). Pages that mix secrets, such as CSRF tokens,
/// with input of the request are therefore sent uncompressed.
struct NoCompression {};

/// Middleware that sets NoCompression for a group of routes:
/// `router.group("/account", http::no_compression)`.
struct SetNoCompression {
  std::optional<Response> before(Request& request) const;
};
inline constexpr SetNoCompression no_compression;

/// The middleware that compress() returns, a Filter.
/// Threads: any core.
class Compress {
 public:
  explicit Compress(CompressOptions options);

  void after(Request& request, Response& response) const;
  /// Returns the memory of the compressors of a core.
  CoreDemands demands(Loop& loop) const;

 private:
  std::shared_ptr<const CompressOptions> options_;
  std::vector<compression::Coding> offered_;  // of the options
};

/// Returns middleware that compresses the responses of its routes: `router.use(http::compress())`.
///
/// The client's Accept-Encoding decides (RFC 9110 §12.5.3): the coding with the highest weight,
/// and CompressOptions::codings among equal ones. A client that accepts neither a coding nor the
/// identity gets the identity, as files() do. A response is compressed if it is streamed or has at
/// least size_min bytes, and if its media type is compressible. A response with Content-Encoding,
/// Content-Digest, Repr-Digest, Digest, Content-MD5 or "Cache-Control: no-transform" stays as it
/// is. So does one with NoCompression, with status 204 or 205, or with Content-Range and another
/// status than 206.
///
/// Such a response has Content-Encoding and "Vary: Accept-Encoding"; the latter also without a
/// coding, if another client would get one. A strong ETag becomes weak ("W/"), so that
/// If-None-Match still matches the ETag of the handler, and If-Range does not. Responses to HEAD
/// have the headers of GET without Content-Length, and are not compressed. A 206 gets only the Vary
/// of its 200. A 304 has the ETag and the Vary of its 200. It is judged by the content and the type
/// that it keeps, as that of etag() and files() does. The ETag and the Vary of a 304 that keeps
/// less change only if the client names the weak form of the ETag in If-None-Match.
///
/// A streamed body is flushed with each write() of its function: the client can decompress all
/// bytes that were written. Events (text/event-stream) are sent as they are.
Compress compress(CompressOptions options = CompressOptions());

}  // namespace weir::http
