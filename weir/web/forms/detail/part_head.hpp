// The head of a part of a multipart form (RFC 7578 §4), and the parameters of headers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/message/headers.hpp"
#include "weir/web/forms/multipart_error.hpp"
#include "weir/web/forms/multipart_limits.hpp"

namespace weir::http::detail {

/// One parameter of a header, such as `name="a"`.
struct Parameter {
  std::string_view name;
  std::string_view text;  ///< as it was sent, without quotes around it
  bool has_escapes = false;
};

/// Takes the next parameter of a header, which begins with ';' or white space.
/// Returns: false at the end, and for a malformed rest, which then is not empty.
bool take_parameter(std::string_view& rest, Parameter& parameter) noexcept;

/// Returns the boundary of a Content-Type of multipart/form-data: 1 to 70 characters of RFC 2046
/// §5.1.1; nullopt for another type or another boundary.
std::optional<std::string_view> boundary_of(std::string_view content_type) noexcept;

/// The head of a part. Its texts are views of the bytes that were parsed, except for the names.
struct PartHead {
  std::vector<HeaderField> headers;
  std::string name;
  std::optional<std::string> file_name;
  std::string_view content_type = "text/plain";  ///< the default of RFC 7578 §4.4

  /// Parses the lines of a head, each of which ends in CRLF.
  /// Returns: nullopt, or the reason why the head is refused.
  std::optional<MultipartError> parse(std::string_view lines, const MultipartLimits& limits);

 private:
  std::optional<MultipartError> read_disposition(std::string_view value,
                                                 const MultipartLimits& limits);
};

/// Returns the last part of a path, of either kind of separator, as a name that is safe to show and
/// to use as the name of a file: without control characters, at most 255 bytes, and not empty, "."
/// or "..".
std::string safe_file_name(std::string_view name);

}  // namespace weir::http::detail
