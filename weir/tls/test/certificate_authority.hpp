// Fixture: a certificate authority, made for each test. No key is stored in a file.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/tls/certificate/identity.hpp"

namespace weir::tls {

/// The wall time of a MemoryPlatform at its start.
inline constexpr WallTime test_start = WallTime(std::chrono::seconds(1'735'689'600));

/// The content of a certificate.
struct Issued {
  std::string common_name = "test";
  std::string names = {};  ///< alternative names in OpenSSL's form: "DNS:a.example,IP:192.0.2.1"
  WallTime not_before = test_start - std::chrono::hours(1);
  WallTime not_after = test_start + std::chrono::hours(24 * 365);
  bool authority = false;
  unsigned rsa_bits = 0;  ///< size of an RSA key, which takes seconds; 0: ECDSA on P-256
  std::string purpose = "serverAuth,clientAuth";
};

class CertificateAuthority {
 public:
  explicit CertificateAuthority(const std::string& name = "Test Root")
      : CertificateAuthority(Issued{.common_name = name,
                                    .not_before = WallTime(std::chrono::seconds(0)),
                                    .not_after = WallTime(std::chrono::years(200)),
                                    .authority = true},
                             nullptr) {}

  /// Returns an authority whose certificate this one has issued.
  CertificateAuthority intermediate(Issued what) const {
    what.authority = true;
    return CertificateAuthority(what, this);
  }
  /// Returns an identity that this authority has issued. Its chain has the intermediates.
  Identity issue(const Issued& what) const {
    const CertificateAuthority made(what, this);
    return Identity::from_pem(made.pem() + chain_, made.key_pem()).value();
  }

  /// Returns the certificate in PEM.
  std::string pem() const {
    return written([this](BIO* out) { return PEM_write_bio_X509(out, certificate_.get()); });
  }

 private:
  struct Deleter {
    void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const noexcept { X509_free(certificate); }
    void operator()(BIO* bio) const noexcept { BIO_free(bio); }
  };

  CertificateAuthority(const Issued& what, const CertificateAuthority* issuer)
      : key_(what.rsa_bits != 0 ? EVP_RSA_gen(what.rsa_bits) : EVP_EC_gen("P-256")),
        certificate_(X509_new()) {
    X509* const made = certificate_.get();
    X509_set_version(made, X509_VERSION_3);
    static long serial = 0x1000;
    ASN1_INTEGER_set(X509_get_serialNumber(made), ++serial);
    ASN1_TIME_set(X509_getm_notBefore(made), seconds(what.not_before));
    ASN1_TIME_set(X509_getm_notAfter(made), seconds(what.not_after));
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(what.common_name.c_str()), -1,
                               -1, 0);
    const X509* const parent = issuer == nullptr ? made : issuer->certificate_.get();
    X509_set_issuer_name(made, X509_get_subject_name(parent));
    X509_set_pubkey(made, key_.get());
    extend(NID_basic_constraints, what.authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (!what.authority) extend(NID_ext_key_usage, what.purpose);
    if (!what.names.empty()) extend(NID_subject_alt_name, what.names);
    EVP_PKEY* const signer = issuer == nullptr ? key_.get() : issuer->key_.get();
    if (X509_sign(made, signer, EVP_sha256()) == 0) throw std::logic_error("no certificate");
    // The root is not part of a chain.
    if (what.authority && issuer != nullptr) chain_ = pem() + issuer->chain_;
  }

  static std::time_t seconds(WallTime time) {
    return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  }
  void extend(int id, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate_.get(), certificate_.get(), nullptr, nullptr, 0);
    X509_EXTENSION* const made = X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
    if (made == nullptr) throw std::logic_error("invalid extension " + value);
    X509_add_ext(certificate_.get(), made, -1);
    X509_EXTENSION_free(made);
  }
  std::string key_pem() const {
    return written([this](BIO* out) {
      return PEM_write_bio_PrivateKey(out, key_.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
  template <class Write>
  static std::string written(Write write) {
    const std::unique_ptr<BIO, Deleter> out(BIO_new(BIO_s_mem()));
    write(out.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(out.get(), &data);
    return std::string(data, static_cast<std::size_t>(size));
  }

  std::unique_ptr<EVP_PKEY, Deleter> key_;
  std::unique_ptr<X509, Deleter> certificate_;
  std::string chain_;  // its certificate and those of its issuers, without the root
};

}  // namespace weir::tls
