// StatusCategory: categories of errors that have statuses of their own.
#pragma once

#include <system_error>

#include "weir/http/syntax/status.hpp"

namespace weir::http {

/// A category of errors whose values know their statuses. to_status() asks it. The text of an error
/// is for the client: if its status is below 500, the response to it is a problem with this text.
class StatusCategory : public std::error_category {
 public:
  virtual Status status_of(int value) const noexcept = 0;
  /// Returns the category of `error` if it is a StatusCategory; else nullptr.
  static const StatusCategory* of(std::error_code error) noexcept {
    return dynamic_cast<const StatusCategory*>(&error.category());
  }
};

}  // namespace weir::http
