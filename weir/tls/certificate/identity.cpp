// Reading, checking and making identities.
#include "weir/tls/certificate/identity.hpp"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <utility>

#include "weir/net/dns/detail/host_name.hpp"
#include "weir/tls/certificate/detail/certificate.hpp"
#include "weir/tls/certificate/detail/openssl.hpp"
#include "weir/tls/crypto/detail/library_context.hpp"
#include "weir/tls/crypto/detail/random.hpp"

namespace weir::tls {
namespace {

struct BioDeleter {
  void operator()(BIO* bio) const noexcept { BIO_free(bio); }
};
using BioPtr = std::unique_ptr<BIO, BioDeleter>;

std::unexpected<Failure> library_failure() {
  return std::unexpected(Failure(Error::library_failure, detail::take_openssl_error()));
}

/// Returns what `write(bio)` writes, or an empty text.
template <class Write>
std::string written_by(Write write) {
  const BioPtr out(BIO_new(BIO_s_secmem()));
  if (out == nullptr || write(out.get()) != 1) return {};
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

/// Sets version, serial number and dates.
bool set_frame(X509& certificate, const SelfSigned& options) {
  std::array<unsigned char, 16> serial{};
  if (!detail::fill_random(std::as_writable_bytes(std::span(serial)))) return false;
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7fU) | 0x40U);  // positive, 16 bytes
  ASN1_INTEGER* const number = X509_get_serialNumber(&certificate);
  const auto begin = std::chrono::floor<std::chrono::seconds>(options.not_before);
  const auto end = std::chrono::floor<std::chrono::seconds>(options.not_before + options.lifetime);
  return X509_set_version(&certificate, X509_VERSION_3) == 1 &&
         ASN1_STRING_set(number, serial.data(), static_cast<int>(serial.size())) == 1 &&
         ASN1_TIME_set(X509_getm_notBefore(&certificate), begin.time_since_epoch().count()) !=
             nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(&certificate), end.time_since_epoch().count()) != nullptr;
}

bool add_extension(X509& certificate, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, &certificate, &certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
  if (extension == nullptr) return false;
  const int added = X509_add_ext(&certificate, extension, -1);
  X509_EXTENSION_free(extension);
  return added == 1;
}

/// Sets the names, the key and the purpose, and signs.
bool complete(X509& certificate, EVP_PKEY& key, const SelfSigned& options) {
  X509_NAME* const name = X509_get_subject_name(&certificate);
  const std::string& common = options.names.front();
  const auto* const text = reinterpret_cast<const unsigned char*>(common.data());
  // A common name has at most 64 characters (RFC 5280, ub-common-name).
  const int size = static_cast<int>(std::min<std::size_t>(common.size(), 64));
  std::string names;
  for (const std::string& each : options.names) {
    names.append(names.empty() ? "" : ",");
    names.append(detail::is_ip_address(each) ? "IP:" : "DNS:").append(each);
  }
  return X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8, text, size, -1, 0) == 1 &&
         X509_set_issuer_name(&certificate, name) == 1 &&
         X509_set_pubkey(&certificate, &key) == 1 &&
         add_extension(certificate, NID_basic_constraints, "critical,CA:FALSE") &&
         add_extension(certificate, NID_key_usage, "critical,digitalSignature") &&
         add_extension(certificate, NID_ext_key_usage, "serverAuth,clientAuth") &&
         add_extension(certificate, NID_subject_alt_name, names) &&
         X509_sign(&certificate, &key, detail::sha_256()) > 0;
}

}  // namespace

Identity::Data::~Data() {
  OPENSSL_cleanse(key.data(), key.size());
}

Outcome<Identity> Identity::from_pem(std::string_view chain, std::string_view key) {
  auto certificates = detail::read_certificates(chain);
  if (!certificates) return std::unexpected(std::move(certificates.error()));
  auto private_key = detail::read_key(key);
  if (!private_key) return std::unexpected(std::move(private_key.error()));
  const X509& own = *certificates->front();
  if (X509_check_private_key(&own, private_key->get()) != 1) {
    ERR_clear_error();
    return std::unexpected(
        Failure(Error::key_mismatch, "the key does not belong to " + detail::subject_of(own)));
  }
  auto data = std::make_shared<Data>();
  data->chain = chain;
  data->key = key;
  data->names = detail::names_of(own);
  data->not_before = detail::not_before_of(own);
  data->not_after = detail::not_after_of(own);
  return Identity(std::move(data));
}

Outcome<Identity> Identity::self_signed(const SelfSigned& wanted) {
  if (wanted.names.empty()) {
    return std::unexpected(Failure(Error::invalid_options, "a certificate needs a name"));
  }
  SelfSigned options = wanted;
  for (std::string& each : options.names) {
    each = dns::normal_host(each);
    const std::string_view name = each;
    const std::string_view host = name.starts_with("*.") ? name.substr(2) : name;
    if (detail::is_ip_address(each) || detail::is_dns_name(host)) continue;
    return std::unexpected(
        Failure(Error::invalid_options, "not a DNS name or IP address: " + each));
  }
  if (detail::openssl_has_ended()) return detail::ended_openssl();
  ERR_clear_error();
  detail::use_simulated_random();
  const detail::KeyPtr key(EVP_PKEY_Q_keygen(detail::library_context(), nullptr, "EC", "P-256"));
  const detail::CertificatePtr certificate(X509_new_ex(detail::library_context(), nullptr));
  if (key == nullptr || certificate == nullptr || !set_frame(*certificate, options) ||
      !complete(*certificate, *key, options)) {
    return library_failure();
  }
  const std::string chain =
      written_by([&](BIO* out) { return PEM_write_bio_X509(out, certificate.get()); });
  std::string secret = written_by([&](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  auto identity = from_pem(chain, secret);
  OPENSSL_cleanse(secret.data(), secret.size());
  return identity;
}

}  // namespace weir::tls
