// Preconditions of requests: If-Match, If-Unmodified-Since, If-None-Match, If-Modified-Since and
// If-Range (RFC 9110 §13). A handler uses them for responses of its own:
//
//     const http::Validators current{.etag = tag, .last_modified = note.changed};
//     if (auto answer = http::answer_preconditions(request, current)) return std::move(*answer);
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/base/time.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/http/message/request.hpp"
#include "weir/http/message/response.hpp"

namespace weir::http {

/// The Validators describe the version of a resource that the server would send or change now.
/// Lifetime: `etag` outlives the calls that take it.
struct Validators {
  std::string_view etag = {};  ///< the ETag as it is sent, with quotes; empty: none
  std::optional<WallTime> last_modified =
      std::nullopt;    ///< the Last-Modified; it counts in full seconds
  bool exists = true;  ///< false if the resource has no representation
  /// The time of the response, if it is known. If-Range with a date then fails for a version that
  /// is younger than one second, because another one may have the same date (RFC 9110 §8.8.2.2).
  std::optional<WallTime> now = std::nullopt;
};

/// The result of the preconditions of a request.
enum class Precondition : std::uint8_t {
  passed,        ///< the server performs the method
  not_modified,  ///< 304: the client has the current version
  failed,        ///< 412: the client expected another version
};

/// Evaluates the preconditions in the order of RFC 9110 §13.2.2. The caller does so only if its
/// response without them would be 2xx. A header that is malformed, or that has no validator to
/// compare with, is ignored, except that a malformed If-Match fails. If-Match and If-None-Match are
/// lists, so all headers of these names count. A date that comes in two headers is malformed, also
/// if both are equal (RFC 9110 §5.3): neither of them wins. CONNECT, OPTIONS and TRACE have no
/// preconditions.
Precondition evaluate_preconditions(const RequestHead& head, const Validators& current) noexcept;

/// Returns the response that the preconditions demand: 412, or 304 with ETag and Last-Modified;
/// nullopt if they passed. The caller adds Cache-Control, Vary and other headers of its 200 to a
/// 304.
std::optional<Response> answer_preconditions(const Request& request, const Validators& current);

/// Returns true if a Range header of the request applies: there is no If-Range, or it names the
/// current version. A weak tag, a date that is not equal, and two If-Range headers never do (RFC
/// 9110 §13.1.5).
bool range_applies(const RequestHead& head, const Validators& current) noexcept;

/// Sets ETag and Last-Modified of a response.
void set_validators(Response& response, const Validators& current);

}  // namespace weir::http
