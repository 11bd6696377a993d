// Entity tags of whole responses, and 304 (Not Modified) for clients that have the response already
// (RFC 9110 §8.8.3, §13.1.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"

namespace weir::http {

/// EtagOptions says which responses get a tag.
struct EtagOptions {
  /// True for a weak tag, `W/"..."`, which stays valid if the bytes are encoded on their way. A
  /// strong tag also serves requests for ranges.
  bool weak = true;
  std::size_t body_bytes_min = 0;
  /// A larger body gets no tag. The hash of a body takes about 1 ms for 8 MiB.
  std::size_t body_bytes_max = std::size_t{4} * 1024 * 1024;
};

/// The middleware that etag() makes. A response to GET or HEAD with status 200 and a whole body
/// gets a hash of its body as its tag. A tag of the handler stays, also that of a streamed
/// response. A response that accepts a WebSocket is left alone on every version of HTTP. If the
/// request has this tag in If-None-Match, the response is 304 without a body. If-Match with another
/// tag gets 412. A Last-Modified of the response counts for the conditions with dates; see
/// evaluate_preconditions(). A response to HEAD with an empty body gets no tag,
/// because its handler may not have made the body of GET. It saves sending the body, not making it.
/// It belongs inside of a compression.
/// Threads: any.
class Etag {
 public:
  explicit Etag(EtagOptions options = {}) noexcept : options_(options) {}

  void after(Request& request, Response& response) const;

 private:
  bool add_tag(const Request& request, Response& response) const;

  EtagOptions options_;
};

/// Returns the middleware for these options: `router.use(http::etag())`.
inline Etag etag(EtagOptions options = {}) noexcept {
  return Etag(options);
}

}  // namespace weir::http
