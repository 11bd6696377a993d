// The length of a received body, as its carrier knows it before the first byte.
#pragma once

#include <cstdint>
#include <optional>

namespace weir::http {

/// BodyLength tells if a received message has a body, and how long it is. The carrier of the
/// message knows it: the framing of HTTP/1 (RFC 9112 §6.3), or END_STREAM of HTTP/2 (RFC 9113
/// §8.1). The method and the headers alone do not tell it. Threads: any.
class BodyLength {
 public:
  enum class Kind : std::uint8_t {
    none,     ///< no byte follows the head
    known,    ///< the message announces the number of bytes, which is not 0
    unknown,  ///< only the end of the body tells its length, which may be 0
  };

  /// Makes the length of a message that ends with its head.
  constexpr BodyLength() noexcept = default;
  static constexpr BodyLength of(std::uint64_t bytes) noexcept {
    return {bytes > 0 ? Kind::known : Kind::none, bytes};
  }
  static constexpr BodyLength unknown() noexcept { return {Kind::unknown, 0}; }

  constexpr Kind kind() const noexcept { return kind_; }
  /// Returns true if a byte of a body may follow the head.
  constexpr bool has_body() const noexcept { return kind_ != Kind::none; }
  /// Returns the number of bytes, which is 0 without a body; std::nullopt if it is unknown.
  constexpr std::optional<std::uint64_t> bytes() const noexcept {
    if (kind_ == Kind::unknown) return std::nullopt;
    return bytes_;
  }
  friend constexpr bool operator==(const BodyLength&, const BodyLength&) = default;

 private:
  constexpr BodyLength(Kind kind, std::uint64_t bytes) noexcept : bytes_(bytes), kind_(kind) {}

  std::uint64_t bytes_ = 0;
  Kind kind_ = Kind::none;
};

}  // namespace weir::http
