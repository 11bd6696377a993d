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

}  // namespace weir::tls::detail
