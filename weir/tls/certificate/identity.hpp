// Identity: a certificate chain with its private key, by which one side proves its names.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/tls/certificate/error.hpp"

namespace weir::tls {

/// SelfSigned describes a certificate that Identity::self_signed() makes.
struct SelfSigned {
  /// DNS names and IP addresses of the certificate; the first one is also its common name. A dot at
  /// the end of a name is dropped (RFC 5280 §4.2.1.6).
  std::vector<std::string> names = {"localhost", "127.0.0.1", "::1"};
  WallTime not_before = {};  ///< usually the time of the platform
  Duration lifetime = std::chrono::hours(24 * 90);
};

/// An Identity is a certificate chain with its private key. Copies share one immutable object,
/// which erases the key from memory when the last copy is destroyed.
/// Threads: any.
class Identity {
 public:
  /// Reads a chain in PEM, the certificate of this side first, and its unencrypted key in PEM.
  /// Errors: Error::invalid_certificate, invalid_key, key_mismatch.
  static Outcome<Identity> from_pem(std::string_view chain, std::string_view key);
  /// Makes an ECDSA key on P-256 and a certificate that is its own issuer, for development. A
  /// client trusts it only if ClientOptions::trust names its chain().
  /// Errors: Error::invalid_options for no names or a malformed one, Error::library_failure.
  static Outcome<Identity> self_signed(const SelfSigned& options);

  /// Returns the DNS names and IP addresses of the certificate: names in lower case, addresses as
  /// RFC 5952 writes them. The common name is not one of them (RFC 9525).
  const std::vector<std::string>& names() const noexcept { return data_->names; }
  WallTime not_before() const noexcept { return data_->not_before; }
  WallTime not_after() const noexcept { return data_->not_after; }
  /// Returns the chain in PEM.
  const std::string& chain() const noexcept { return data_->chain; }
  /// Returns the private key in PEM, which is a secret.
  const std::string& key() const noexcept { return data_->key; }

 private:
  struct Data {
    Data() = default;
    Data(const Data&) = delete;
    Data& operator=(const Data&) = delete;
    ~Data();
    std::string chain;
    std::string key;
    std::vector<std::string> names;
    WallTime not_before;
    WallTime not_after;
  };
  explicit Identity(std::shared_ptr<const Data> data) noexcept : data_(std::move(data)) {}

  std::shared_ptr<const Data> data_;
};

}  // namespace weir::tls
