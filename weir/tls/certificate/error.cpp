// The names of the reasons and their error category.
#include "weir/tls/certificate/error.hpp"

#include <array>

namespace weir::tls {
namespace {

constexpr std::array<std::string_view, error_count> names{
    "unknown",
    "unreadable_file",
    "invalid_certificate",
    "invalid_key",
    "key_mismatch",
    "invalid_options",
    "library_failure",
    "timed_out",
    "too_many_handshakes",
    "input_too_large",
    "peer_left",
    "plain_http",
    "not_tls",
    "no_common_version",
    "no_common_cipher",
    "no_common_protocol",
    "unknown_server_name",
    "bad_message",
    "certificate_missing",
    "certificate_expired",
    "certificate_not_yet_valid",
    "certificate_self_signed",
    "unknown_ca",
    "wrong_name",
    "certificate_rejected",
    "peer_rejected_certificate",
    "peer_rejected",
    "truncated",
    "bad_record",
    "record_flood",
    "peer_alert",
};
static_assert(names.back() == "peer_alert");

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "weir.tls"; }
  std::string message(int value) const override {
    return std::string(name_of(static_cast<Error>(value)));
  }
};

}  // namespace

std::string_view name_of(Error error) noexcept {
  const auto index = static_cast<std::size_t>(error);
  return index < names.size() ? names[index] : names[0];
}

const std::error_category& tls_error_category() noexcept {
  static const Category category;
  return category;
}

std::string Failure::text() const {
  std::string text = code_.message();
  if (!text_.empty()) text.append(": ").append(text_);
  return text;
}

}  // namespace weir::tls
