#include "weir/tls/certificate/detail/openssl.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

namespace weir::tls::detail {

void OpensslDeleter::operator()(evp_pkey_st* key) const noexcept {
  EVP_PKEY_free(key);
}
void OpensslDeleter::operator()(ssl_ctx_st* context) const noexcept {
  SSL_CTX_free(context);
}
void OpensslDeleter::operator()(ssl_session_st* session) const noexcept {
  SSL_SESSION_free(session);
}
void OpensslDeleter::operator()(ssl_st* ssl) const noexcept {
  SSL_free(ssl);
}
void OpensslDeleter::operator()(x509_st* certificate) const noexcept {
  X509_free(certificate);
}
void OpensslDeleter::operator()(x509_store_st* store) const noexcept {
  X509_STORE_free(store);
}

std::string take_openssl_error() {
  const unsigned long code = ERR_peek_error();
  const char* const reason = ERR_reason_error_string(code);
  std::string text = reason != nullptr ? reason : "unknown error";
  ERR_clear_error();
  return text;
}

std::unexpected<Failure> ended_openssl() {
  return std::unexpected(
      Failure(Error::library_failure, "the program has called OPENSSL_cleanup()"));
}

namespace {

/// Returns the reason for an alert of the peer.
Failure failure_of_alert(int alert) {
  const std::string text = std::string("alert ") + SSL_alert_desc_string_long(alert);
  switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_CERTIFICATE_REQUIRED:
      return Failure(Error::peer_rejected_certificate, text);
    default:
      return Failure(Error::peer_rejected, text);
  }
}

Error error_of_reason(int reason) {
  switch (reason) {
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
      return Error::plain_http;
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_UNEXPECTED_RECORD:
      return Error::not_tls;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_NO_PROTOCOLS_AVAILABLE:
    case SSL_R_WRONG_SSL_VERSION:
      return Error::no_common_version;
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_CIPHERS_AVAILABLE:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
    case SSL_R_NO_SUITABLE_GROUPS:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
      return Error::no_common_cipher;
    case SSL_R_EXCESSIVE_MESSAGE_SIZE:
      return Error::input_too_large;
    case SSL_R_NO_APPLICATION_PROTOCOL:
      return Error::no_common_protocol;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return Error::certificate_missing;
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
    case SSL_R_CA_MD_TOO_WEAK:
    case SSL_R_EE_KEY_TOO_SMALL:
      return Error::certificate_rejected;
    case ERR_R_MALLOC_FAILURE:
    case ERR_R_INTERNAL_ERROR:
      return Error::library_failure;
    default:
      return Error::bad_message;
  }
}

}  // namespace

bool is_alert(unsigned long code) noexcept {
  // The reasons that all libraries share, such as ERR_R_INTERNAL_ERROR, are above those of alerts.
  constexpr int end = SSL_AD_REASON_OFFSET + 256;
  const int reason = ERR_GET_REASON(code);
  return ERR_GET_LIB(code) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET && reason < end;
}

Failure failure_of_handshake_error(unsigned long code) {
  if (code == 0) return Failure(Error::library_failure);
  const int reason = ERR_GET_REASON(code);
  if (is_alert(code)) {
    return failure_of_alert(reason - SSL_AD_REASON_OFFSET);
  }
  const char* const text = ERR_reason_error_string(code);
  const Error error =
      ERR_GET_LIB(code) == ERR_LIB_SSL ? error_of_reason(reason) : Error::bad_message;
  return Failure(error, text == nullptr ? "" : text);
}

}  // namespace weir::tls::detail
