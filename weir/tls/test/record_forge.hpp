// Fixture: a client that seals any record with the keys of a connection, also invalid ones.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "weir/tls/detail/records/aead_core.hpp"
#include "weir/tls/detail/records/traffic_key.hpp"

namespace weir::tls::detail {

/// The types of records. RFC 8446, B.1.
namespace record_type {
inline constexpr std::uint8_t change_cipher_spec = 20;
inline constexpr std::uint8_t alert = 21;
inline constexpr std::uint8_t handshake = 22;
inline constexpr std::uint8_t data = 23;
}  // namespace record_type

/// The client of a connection whose server has these keys. It shares no code with AeadRecords,
/// except for the derivation of keys and the AEADs of OpenSSL.
class RecordForge {
 public:
  explicit RecordForge(const ConnectionKeys& of_server) : keys_(of_server) {}
  ~RecordForge() {
    core_.forget(keys_.read);
    core_.forget(keys_.write);
  }
  RecordForge(const RecordForge&) = delete;
  RecordForge& operator=(const RecordForge&) = delete;

  /// Returns a record with `padding` bytes of padding in TLS 1.3.
  std::string seal(std::uint8_t type, std::string_view content, std::size_t padding = 0) {
    if (keys_.version == TlsVersion::tls_1_2) return seal_1_2(type, content);
    return seal_inner(std::string(content) + static_cast<char>(type) + std::string(padding, '\0'));
  }
  std::string data(std::string_view text) { return seal(record_type::data, text); }
  std::string alert(std::uint8_t level, std::uint8_t description) {
    const std::array<char, 2> content{static_cast<char>(level), static_cast<char>(description)};
    return seal(record_type::alert, {content.data(), content.size()});
  }
  /// Returns a record of TLS 1.3 with this inner plaintext.
  std::string seal_inner(std::string_view inner) {
    const std::string header = header_of(record_type::data, inner.size() + AeadCore::tag_bytes);
    return header + sealed(nonce(keys_.read), header, inner);
  }
  /// Returns a KeyUpdate, and uses the next key from then on.
  std::string update(std::uint8_t request = 0) {
    std::string record = seal(record_type::handshake, update_message(request));
    next_key();
    return record;
  }
  static std::string update_message(std::uint8_t request = 0) {
    return std::string("\x18\0\0\x01", 4) + static_cast<char>(request);
  }
  void next_key() {
    core_.forget(keys_.read);
    update_key(keys_.read, keys_.suite);
  }
  std::uint64_t& sequence() { return keys_.read.sequence; }

  /// Opens a record of a server with TLS 1.3. Returns its content with the type at the end.
  std::string open(std::string_view record) {
    std::string sealed(record.substr(5));
    const bool opened =
        core_.open(keys_.suite, keys_.write, nonce(keys_.write), to_bytes(record.substr(0, 5)),
                   {reinterpret_cast<std::byte*>(sealed.data()), sealed.size()});
    ++keys_.write.sequence;
    return opened ? sealed.substr(0, sealed.size() - AeadCore::tag_bytes) : "not authentic";
  }
  /// Opens what follows a KeyUpdate of the server.
  void next_server_key() {
    core_.forget(keys_.write);
    update_key(keys_.write, keys_.suite);
  }

 private:
  static std::string header_of(std::uint8_t type, std::size_t length) {
    return {static_cast<char>(type), 3, 3, static_cast<char>(length >> 8),
            static_cast<char>(length)};
  }
  static std::string big_endian(std::uint64_t number) {
    std::string text;
    for (int shift = 56; shift >= 0; shift -= 8) text += static_cast<char>(number >> shift);
    return text;
  }
  static Nonce nonce(const TrafficKey& key) {
    Nonce nonce = key.iv;
    const std::string number = big_endian(key.sequence);
    for (std::size_t index = 0; index < 8; ++index) {
      nonce[4 + index] = static_cast<std::uint8_t>(nonce[4 + index] ^ number[index]);
    }
    return nonce;
  }
  std::string seal_1_2(std::uint8_t type, std::string_view content) {
    const bool chacha = keys_.suite == Suite::chacha20_poly1305;
    Nonce used = nonce(keys_.read);
    std::string sent;  // the explicit nonce
    if (!chacha) {
      sent = big_endian(keys_.read.sequence * 7);
      std::memcpy(used.data(), keys_.read.iv.data(), 4);
      std::memcpy(used.data() + 4, sent.data(), 8);
    }
    const std::string associated =
        big_endian(keys_.read.sequence) + header_of(type, content.size());
    return header_of(type, sent.size() + content.size() + AeadCore::tag_bytes) + sent +
           sealed(used, associated, content);
  }
  std::string sealed(const Nonce& nonce, std::string_view associated, std::string_view plain) {
    std::string target(plain.size() + AeadCore::tag_bytes, '\0');
    const Bytes part = to_bytes(plain);
    if (!core_.seal(keys_.suite, keys_.read, nonce, to_bytes(associated), {&part, 1},
                    reinterpret_cast<std::byte*>(target.data()))) {
      throw std::logic_error("not sealed");
    }
    ++keys_.read.sequence;
    return target;
  }

  AeadCore core_{nullptr, AesGcm::openssl};
  ConnectionKeys keys_;
};

}  // namespace weir::tls::detail
