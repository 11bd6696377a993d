// Builds the ClientHello of an unusual or a hostile TLS client.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weir/check/check_target.hpp"

namespace weir::check {

/// Types of records (RFC 8446, 5.1).
enum class RecordType : std::uint8_t {
  change_cipher_spec = 20,
  alert = 21,
  handshake = 22,
  application_data = 23,
  heartbeat = 24,  ///< RFC 6520
};

/// Types of extensions that cases use.
enum class ExtensionType : std::uint16_t {
  server_name = 0,
  supported_groups = 10,
  point_formats = 11,
  signature_algorithms = 13,
  heartbeat = 15,
  alpn = 16,
  padding = 21,
  session_ticket = 35,
  pre_shared_key = 41,
  early_data = 42,
  supported_versions = 43,
  psk_modes = 45,
  key_share = 51,
};

/// Returns the last `size` bytes of `value` in network order.
std::string number(std::uint64_t value, unsigned size);
/// Returns `content` behind its length, which has `size` bytes.
std::string prefixed(std::string_view content, unsigned size);
/// Returns a list of 16-bit numbers behind its length in bytes, which has `size` bytes.
std::string list(const std::vector<std::uint16_t>& values, unsigned size = 2);
/// Returns one record. `bytes` may be longer than a record may be.
std::string record(RecordType type, std::string_view bytes);
/// Returns `bytes` in records of at most `size` bytes.
std::string fragments(RecordType type, std::string_view bytes, std::size_t size);
/// Returns one handshake message (RFC 8446, 4).
std::string handshake_message(std::uint8_t type, std::string_view body);

struct Extension {
  ExtensionType type{};
  std::string body;
};

/// A ClientHello (RFC 8446, 4.1.2). Cases change its members before they send it.
struct ClientHello {
  std::uint16_t version = 0x0303;
  std::string session_id;
  std::vector<std::uint16_t> suites;
  std::string compressions = std::string(1, '\0');
  std::vector<Extension> extensions;
  std::string behind_extensions;  ///< bytes behind the last extension, within their length
  std::string behind;             ///< bytes of the message behind the extensions

  /// Replaces the body of an extension, or adds the extension at the end.
  ClientHello& set(ExtensionType type, std::string body);
  ClientHello& remove(ExtensionType type);
  /// Returns the handshake message.
  std::string message() const;
  /// Returns the message in one record.
  std::string in_record() const;
};

/// Returns a usual ClientHello that offers TLS 1.3 and 1.2.
ClientHello hello_of_1_3(const CheckTarget& target);
/// Returns a usual ClientHello of a client without TLS 1.3.
ClientHello hello_of_1_2(const CheckTarget& target);

}  // namespace weir::check
