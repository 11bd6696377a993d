#include "weir/net/name_error.hpp"

#include <string>

#include "weir/base/error.hpp"

namespace weir::names {
namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "weir.names"; }

  std::string message(int value) const override {
    switch (static_cast<Failure>(value)) {
      case Failure::no_address:
        return "the name has no such address";
      case Failure::not_found:
        return "no such name";
      case Failure::unreachable:
        return "no name server is reachable";
      case Failure::timed_out:
        return "no name server answered in time";
      case Failure::malformed:
        return "a name server's answer is malformed";
      case Failure::refused:
        return "a name server refused to answer";
      case Failure::server_failed:
        return "a name server failed";
    }
    return "unknown name failure " + std::to_string(value);
  }

  std::error_condition default_error_condition(int value) const noexcept override {
    switch (static_cast<Failure>(value)) {
      case Failure::timed_out:
        return std::errc::timed_out;
      case Failure::unreachable:
        return std::errc::host_unreachable;
      default:
        return {value, *this};
    }
  }
};

/// The values of Failure are in this order; what comes from elsewhere (descriptors have run out,
/// too many look-ups) is about us and not about the name: nothing says more.
int telling(std::error_code error) noexcept {
  if (!error) return 0;
  return error.category() == failure_category() ? error.value()
                                                : static_cast<int>(failure_count) + 1;
}

}  // namespace

const std::error_category& failure_category() noexcept {
  static const Category category;
  return category;
}

std::error_code more_telling(std::error_code first, std::error_code second) noexcept {
  return telling(second) > telling(first) ? second : first;
}

}  // namespace weir::names
