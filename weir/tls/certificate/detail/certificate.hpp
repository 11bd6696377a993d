// Certificates: reading them from PEM, their names and dates, and why a chain is rejected.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/net/tls_info.hpp"
#include "weir/tls/certificate/detail/openssl.hpp"
#include "weir/tls/certificate/error.hpp"

struct x509_store_ctx_st;

namespace weir::tls::detail {

/// Returns the certificates of a text in PEM, in order; text around them is ignored.
/// Errors: Error::invalid_certificate if there is none, or one is malformed.
Outcome<std::vector<CertificatePtr>> read_certificates(std::string_view pem);
/// Returns the unencrypted private key of a text in PEM.
/// Errors: Error::invalid_key.
Outcome<KeyPtr> read_key(std::string_view pem);
/// Returns a store with the certificates of a text in PEM; an empty one for an empty text.
/// Errors: Error::invalid_certificate, library_failure.
Outcome<StorePtr> make_store(std::string_view pem);

/// Returns the DNS names and IP addresses of a certificate in the form of dns::normal_host().
std::vector<std::string> names_of(const x509_st& certificate);
WallTime not_before_of(const x509_st& certificate) noexcept;
WallTime not_after_of(const x509_st& certificate) noexcept;
/// Returns the subject in the form of RFC 2253.
std::string subject_of(const x509_st& certificate);
TlsPeer describe(const x509_st& certificate);

/// Returns "2026-11-26 10:00:00 UTC".
std::string to_text(WallTime time);

/// Returns true if `host` is an IPv4 or IPv6 address in its text form.
bool is_ip_address(std::string_view host) noexcept;
/// Returns true if `host` is a DNS name that may be sent as a server name: letters, digits, '-',
/// '_' and dots, at most 253 bytes, without a dot at its end.
bool is_dns_name(std::string_view host) noexcept;

/// Returns why the verification in progress has failed, for the certificate that it is about.
/// `host` is the wanted name, or empty.
Failure rejection_of(x509_store_ctx_st& verification, std::string_view host);

}  // namespace weir::tls::detail
