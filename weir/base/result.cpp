#include "weir/base/result.hpp"

namespace weir {
namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "weir"; }

  std::string message(int value) const override {
    switch (static_cast<Errc>(value)) {
      case Errc::cancelled:
        return "cancelled";
      case Errc::timed_out:
        return "timed out";
      case Errc::end_of_stream:
        return "end of stream";
      case Errc::closed:
        return "closed";
      case Errc::limit_reached:
        return "limit reached";
      case Errc::bad_input:
        return "malformed input";
      case Errc::unsupported:
        return "not supported here";
      case Errc::not_found:
        return "not found";
      case Errc::conflict:
        return "conflict";
      case Errc::bad_configuration:
        return "bad configuration";
    }
    return "unknown error " + std::to_string(value);
  }

  std::error_condition default_error_condition(int value) const noexcept override {
    switch (static_cast<Errc>(value)) {
      case Errc::cancelled:
        return std::errc::operation_canceled;
      case Errc::timed_out:
        return std::errc::timed_out;
      default:
        return {value, *this};
    }
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const Category category;
  return category;
}

}  // namespace weir
