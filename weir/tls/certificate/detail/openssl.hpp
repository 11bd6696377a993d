// The types of OpenSSL that Weir owns, without OpenSSL's headers, and the texts of its errors.
#pragma once

#include <memory>
#include <string>

#include "weir/tls/certificate/error.hpp"

struct evp_pkey_st;
struct ssl_ctx_st;
struct ssl_session_st;
struct ssl_st;
struct x509_st;
struct x509_store_st;

namespace weir::tls::detail {

struct OpensslDeleter {
  void operator()(evp_pkey_st* key) const noexcept;
  void operator()(ssl_ctx_st* context) const noexcept;
  void operator()(ssl_session_st* session) const noexcept;
  void operator()(ssl_st* ssl) const noexcept;
  void operator()(x509_st* certificate) const noexcept;
  void operator()(x509_store_st* store) const noexcept;
};
using KeyPtr = std::unique_ptr<evp_pkey_st, OpensslDeleter>;
using SslContextPtr = std::unique_ptr<ssl_ctx_st, OpensslDeleter>;
using SslSessionPtr = std::unique_ptr<ssl_session_st, OpensslDeleter>;
using SslPtr = std::unique_ptr<ssl_st, OpensslDeleter>;
using CertificatePtr = std::unique_ptr<x509_st, OpensslDeleter>;
using StorePtr = std::unique_ptr<x509_store_st, OpensslDeleter>;

/// Returns the text of the first error in OpenSSL's queue of this thread, and clears the queue.
std::string take_openssl_error();
/// Returns the failure of a function after OPENSSL_cleanup(); see openssl_has_ended().
std::unexpected<Failure> ended_openssl();
/// Returns true if an error code of OpenSSL's queue stands for an alert of the peer.
bool is_alert(unsigned long code) noexcept;
/// Returns the failure of a handshake for an error code of OpenSSL's queue; 0: the queue is empty.
Failure failure_of_handshake_error(unsigned long code);

}  // namespace weir::tls::detail
