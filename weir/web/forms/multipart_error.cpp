#include "weir/web/forms/multipart_error.hpp"

#include <string>

namespace weir::http {
namespace {

class Category final : public StatusCategory {
 public:
  const char* name() const noexcept override { return "weir.http.multipart"; }
  std::string message(int value) const override {
    return std::string("multipart form: ") + reason_of(static_cast<MultipartError>(value));
  }
  Status status_of(int value) const noexcept override {
    return static_cast<MultipartError>(value) >= MultipartError::too_many_parts
               ? Status::content_too_large
               : Status::bad_request;
  }

 private:
  static const char* reason_of(MultipartError error) {
    switch (error) {
      case MultipartError::bad_boundary:
        return "Content-Type has no valid boundary";
      case MultipartError::bad_delimiter:
        return "other bytes follow a boundary in its line";
      case MultipartError::missing_end:
        return "the body ends before the last boundary";
      case MultipartError::bad_part_head:
        return "a line in the head of a part is not a header that ends in CRLF";
      case MultipartError::bad_disposition:
        return "a part does not have one Content-Disposition of form-data with a name";
      case MultipartError::repeated_parameter:
        return "a part has two names or two file names";
      case MultipartError::bad_name:
        return "a name or a file name is not UTF-8, or has a control character";
      case MultipartError::bad_encoding:
        return "Content-Transfer-Encoding is not allowed in a form (RFC 7578, 4.7)";
      case MultipartError::too_many_parts:
        return "too many parts";
      case MultipartError::too_many_headers:
        return "too many headers in a part";
      case MultipartError::part_head_too_long:
        return "the head of a part is too long";
      case MultipartError::name_too_long:
        return "a name or a file name is too long";
      case MultipartError::outer_bytes_too_long:
        return "too many bytes before the first or behind the last boundary";
      case MultipartError::part_too_long:
        return "a part is too long";
    }
    return "unknown error";
  }
};

}  // namespace

const StatusCategory& multipart_error_category() noexcept {
  static const Category category;
  return category;
}

}  // namespace weir::http
