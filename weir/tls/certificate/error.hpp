// The reasons for which TLS fails, and the failures that carry one line for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace weir::tls {

/// The reason of a failure. It converts to std::error_code (category "weir.tls"). Each core counts
/// the handshakes that failed, by reason: Runtime::report() has "tls handshakes failed: NAME".
enum class Error : std::uint8_t {
  // The files and options of this side.
  unreadable_file = 1,  ///< a file that cannot be read or is too large
  invalid_certificate,  ///< no PEM certificate, or one that is malformed
  invalid_key,          ///< no PEM private key, or one that is malformed or encrypted
  key_mismatch,         ///< a private key that does not belong to the certificate
  invalid_options,      ///< options that contradict each other
  /// OpenSSL lacks memory or a needed algorithm, or this build of Weir has no OpenSSL.
  library_failure,

  // A handshake that fails.
  timed_out,            ///< HandshakeLimits::timeout or ServerOptions::hello_timeout
  too_many_handshakes,  ///< HandshakeLimits::waiting_max or concurrency_max
  input_too_large,      ///< HandshakeLimits::input_bytes_max
  peer_left,            ///< the stream ended or failed before the handshake was complete
  plain_http,           ///< the peer sent an HTTP request instead of TLS
  not_tls,              ///< the peer sent other bytes that are not TLS
  no_common_version,    ///< no common protocol version
  no_common_cipher,     ///< no common cipher suite, group or signature algorithm
  no_common_protocol,   ///< no common protocol of ALPN; alert no_application_protocol
  unknown_server_name,  ///< ServerOptions::unknown_name; alert unrecognized_name
  bad_message,          ///< a message that violates TLS

  // A certificate of the peer that this side rejects.
  certificate_missing,        ///< no certificate of the peer, but this side requires one
  certificate_expired,        ///< the certificate or a CA above it has expired
  certificate_not_yet_valid,  ///< the certificate or a CA above it is not valid yet
  certificate_self_signed,    ///< a self-signed certificate that is not trusted
  unknown_ca,                 ///< a certificate that no trusted CA has issued
  wrong_name,                 ///< a certificate for other names
  certificate_rejected,       ///< any other fault, such as a weak key or a wrong purpose

  // The peer rejects this side.
  peer_rejected_certificate,  ///< alert of the peer about this side's certificate
  peer_rejected,              ///< any other alert of the peer before the end of the handshake

  // An established connection.
  truncated,  ///< the stream ended without close_notify: data may be missing
  /// A record that is malformed, too long, fails its authentication or asks for a renegotiation.
  bad_record,
  record_flood,  ///< too many records without data in a row
  peer_alert,    ///< a fatal alert of the peer
};

inline constexpr std::size_t error_count = static_cast<std::size_t>(Error::peer_alert) + 1;

/// Returns a short name for counters and logs, such as "wrong_name".
/// Lifetime: the text lives as long as the process.
std::string_view name_of(Error error) noexcept;

/// Returns the category of Error; its name is "weir.tls".
const std::error_category& tls_error_category() noexcept;

inline std::error_code make_error_code(Error error) noexcept {
  return {static_cast<int>(error), tls_error_category()};
}

}  // namespace weir::tls

template <>
struct std::is_error_code_enum<weir::tls::Error> : std::true_type {};

namespace weir::tls {

/// A Failure is a reason and one line for people, which names the facts: "wrong_name:
/// api.example.org is not among www.example.org, *.cdn.example.org". It converts to
/// std::error_code, so that WEIR_TRY and WEIR_CO_TRY pass it on.
class Failure {
 public:
  /// `text` is the line without the name of the reason; empty: there is no more to say.
  Failure(std::error_code code, std::string text = {}) : code_(code), text_(std::move(text)) {}
  Failure(Error error, std::string text = {}) : Failure(make_error_code(error), std::move(text)) {}

  /// Returns an Error, Errc::cancelled, or the error of the inner stream.
  const std::error_code& code() const noexcept { return code_; }
  operator const std::error_code&() const noexcept { return code_; }
  bool operator==(Error error) const noexcept { return code_ == make_error_code(error); }
  /// Returns "REASON: facts", or only the reason.
  std::string text() const;
  /// Returns the same failure with "`where`: " in front of its facts.
  Failure at(const std::string& where) const { return {code_, where + ": " + text_}; }

 private:
  std::error_code code_;
  std::string text_;
};

/// The result of a function that can say why it failed.
template <class T = void>
using Outcome = std::expected<T, Failure>;

}  // namespace weir::tls
