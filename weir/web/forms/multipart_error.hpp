// MultipartError: the reasons for which a multipart form is refused.
#pragma once

#include <cstdint>
#include <system_error>

#include "weir/http/syntax/status_category.hpp"

namespace weir::http {

/// The reason why a body of multipart/form-data is refused. It converts to std::error_code
/// (category "weir.http.multipart"). A handler that returns it answers with its status, 400 or 413,
/// and its text as the detail of a problem.
enum class MultipartError : std::uint8_t {
  bad_boundary = 1,    ///< Content-Type has no valid boundary
  bad_delimiter,       ///< other bytes behind a boundary in its line
  missing_end,         ///< the body ends before the last boundary
  bad_part_head,       ///< a line in the head of a part that is no header, or does not end in CRLF
  bad_disposition,     ///< a part without one `Content-Disposition: form-data` that has a name
  repeated_parameter,  ///< two names, or two file names
  bad_name,            ///< a name or a file name that is not UTF-8, or has a control character
  bad_encoding,        ///< a Content-Transfer-Encoding that changes bytes, such as base64
  too_many_parts,      ///< MultipartLimits::parts_max; 413 as all below
  too_many_headers,    ///< MultipartLimits::headers_max
  part_head_too_long,  ///< MultipartLimits::head_bytes_max
  name_too_long,       ///< MultipartLimits::name_bytes_max
  outer_bytes_too_long,  ///< MultipartLimits::outer_bytes_max
  part_too_long,         ///< a part with more bytes than the handler takes
};

/// Returns the category of MultipartError.
const StatusCategory& multipart_error_category() noexcept;
inline std::error_code make_error_code(MultipartError error) noexcept {
  return {static_cast<int>(error), multipart_error_category()};
}

}  // namespace weir::http

template <>
struct std::is_error_code_enum<weir::http::MultipartError> : std::true_type {};
