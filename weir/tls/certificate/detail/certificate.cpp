#include "weir/tls/certificate/detail/certificate.hpp"

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <utility>

#include "weir/base/text/detail/printable.hpp"
#include "weir/net/dns/detail/host_name.hpp"
#include "weir/os/ip_range.hpp"
#include "weir/tls/crypto/detail/library_context.hpp"

namespace weir::tls::detail {
namespace {

struct BioDeleter {
  void operator()(BIO* bio) const noexcept { BIO_free(bio); }
};
using BioPtr = std::unique_ptr<BIO, BioDeleter>;
struct NamesDeleter {
  void operator()(GENERAL_NAMES* names) const noexcept { GENERAL_NAMES_free(names); }
};
using NamesPtr = std::unique_ptr<GENERAL_NAMES, NamesDeleter>;

BioPtr view(std::string_view text) {
  // The length of a BIO is an int; read_file() has bounded the text.
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string to_string(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

std::string name_text(const X509_NAME* name) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  if (out == nullptr || name == nullptr) return {};
  // RFC 2253 escapes control characters, and OpenSSL all bytes that are not ASCII.
  X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253);
  return to_printable(to_string(out.get()));
}

WallTime to_wall_time(const ASN1_TIME* time) noexcept {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return {};
  const auto day =
      std::chrono::sys_days(std::chrono::year(parts.tm_year + 1900) /
                            std::chrono::month(static_cast<unsigned>(parts.tm_mon + 1)) /
                            std::chrono::day(static_cast<unsigned>(parts.tm_mday)));
  const auto since = std::chrono::seconds(day.time_since_epoch()) +
                     std::chrono::hours(parts.tm_hour) + std::chrono::minutes(parts.tm_min) +
                     std::chrono::seconds(parts.tm_sec);
  // Certificates without an end have the year 9999, which nanoseconds cannot express.
  constexpr auto last = std::chrono::duration_cast<std::chrono::seconds>(Duration::max());
  return WallTime(std::min<std::chrono::seconds>(since, last));
}

std::string text_of(const ASN1_STRING* string) {
  const auto* const data = reinterpret_cast<const char*>(ASN1_STRING_get0_data(string));
  // An escape matches no name.
  return to_printable({data, static_cast<std::size_t>(ASN1_STRING_length(string))});
}

std::string ip_text(const ASN1_OCTET_STRING* bytes) {
  const unsigned char* const data = ASN1_STRING_get0_data(bytes);
  const int size = ASN1_STRING_length(bytes);
  if (size == 4) {
    const os::Address address = os::Address::ipv4({data[0], data[1], data[2], data[3]}, 0);
    return os::ip_text(os::ip_bytes(address).value());
  }
  os::IpBytes address{};
  if (size != static_cast<int>(address.size())) return {};
  std::copy_n(data, address.size(), address.begin());
  return os::ip_text(address);
}

/// Calls `visit(type, text)` for each alternative name of a known type.
template <class Visit>
void visit_names(const X509& certificate, Visit visit) {
  const NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int index = 0; names != nullptr && index < sk_GENERAL_NAME_num(names.get()); ++index) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), index);
    switch (name->type) {
      case GEN_DNS:
        visit(std::string_view("DNS"), dns::normal_host(text_of(name->d.dNSName)));
        break;
      case GEN_IPADD:
        visit(std::string_view("IP"), ip_text(name->d.iPAddress));
        break;
      case GEN_URI:
        visit(std::string_view("URI"), text_of(name->d.uniformResourceIdentifier));
        break;
      case GEN_EMAIL:
        visit(std::string_view("email"), text_of(name->d.rfc822Name));
        break;
      default:
        break;
    }
  }
  ERR_clear_error();
}

std::string serial_of(const X509& certificate) {
  const ASN1_INTEGER* const serial = X509_get0_serialNumber(&certificate);
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string text;
  const unsigned char* const data = ASN1_STRING_get0_data(serial);
  for (int index = 0; index < ASN1_STRING_length(serial); ++index) {
    text.push_back(digits[data[index] >> 4]);
    text.push_back(digits[data[index] & 15]);
  }
  return text;
}

/// A program may hold a key without its pass phrase only.
int no_pass_phrase(char*, int, int, void*) {
  return -1;
}

std::string joined(const std::vector<std::string>& names) {
  if (names.empty()) return "no names";
  // A certificate may have thousands of names; a line has a few.
  constexpr std::size_t shown_max = 8;
  std::string text;
  for (std::size_t index = 0; index < std::min(names.size(), shown_max); ++index) {
    text.append(index == 0 ? "" : ", ").append(names[index]);
  }
  if (names.size() > shown_max) {
    text.append(" and ").append(std::to_string(names.size() - shown_max)).append(" more");
  }
  return text;
}

}  // namespace

Outcome<std::vector<CertificatePtr>> read_certificates(std::string_view pem) {
  if (openssl_has_ended()) return ended_openssl();
  const BioPtr in = view(pem);
  std::vector<CertificatePtr> all;
  ERR_clear_error();
  while (in != nullptr) {
    X509* next = X509_new_ex(library_context(), nullptr);
    if (next == nullptr ||
        PEM_read_bio_X509(in.get(), &next, &no_pass_phrase, nullptr) == nullptr) {
      X509_free(next);
      break;
    }
    all.emplace_back(next);
  }
  const bool ended = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (all.empty() || !ended) {
    std::string why = take_openssl_error();
    return std::unexpected(
        Failure(Error::invalid_certificate, ended ? "no certificate in PEM" : std::move(why)));
  }
  ERR_clear_error();
  return all;
}

Outcome<KeyPtr> read_key(std::string_view pem) {
  if (openssl_has_ended()) return ended_openssl();
  const BioPtr in = view(pem);
  ERR_clear_error();
  KeyPtr key(in == nullptr ? nullptr
                           : PEM_read_bio_PrivateKey_ex(in.get(), nullptr, &no_pass_phrase, nullptr,
                                                        library_context(), nullptr));
  if (key == nullptr) return std::unexpected(Failure(Error::invalid_key, take_openssl_error()));
  return key;
}

Outcome<StorePtr> make_store(std::string_view pem) {
  if (openssl_has_ended()) return ended_openssl();
  StorePtr store(X509_STORE_new());
  if (store == nullptr)
    return std::unexpected(Failure(Error::library_failure, take_openssl_error()));
  if (pem.empty()) return store;
  auto certificates = read_certificates(pem);
  if (!certificates) return std::unexpected(std::move(certificates.error()));
  for (const CertificatePtr& each : *certificates) {
    // A certificate that is there already is no error.
    if (X509_STORE_add_cert(store.get(), each.get()) != 1) {
      return std::unexpected(Failure(Error::library_failure, take_openssl_error()));
    }
  }
  return store;
}

std::vector<std::string> names_of(const x509_st& certificate) {
  std::vector<std::string> all;
  visit_names(certificate, [&](std::string_view type, std::string text) {
    if ((type == "DNS" || type == "IP") && !text.empty()) all.push_back(std::move(text));
  });
  return all;
}

WallTime not_before_of(const x509_st& certificate) noexcept {
  return to_wall_time(X509_get0_notBefore(&certificate));
}

WallTime not_after_of(const x509_st& certificate) noexcept {
  return to_wall_time(X509_get0_notAfter(&certificate));
}

std::string subject_of(const x509_st& certificate) {
  return name_text(X509_get_subject_name(&certificate));
}

TlsPeer describe(const x509_st& certificate) {
  TlsPeer peer{.subject = subject_of(certificate),
               .issuer = name_text(X509_get_issuer_name(&certificate)),
               .alternative_names = {},
               .serial = serial_of(certificate),
               .fingerprint = {},
               .not_before = not_before_of(certificate),
               .not_after = not_after_of(certificate)};
  visit_names(certificate, [&](std::string_view type, const std::string& text) {
    peer.alternative_names.push_back(std::string(type) + ":" + text);
  });
  unsigned size = 0;
  X509_digest(&certificate, sha_256(), peer.fingerprint.data(), &size);
  return peer;
}

std::string to_text(WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto day = std::chrono::floor<std::chrono::days>(seconds);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(seconds - day);
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02u %02d:%02d:%02d UTC",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text.data();
}

bool is_ip_address(std::string_view host) noexcept {
  return os::parse_ip(host).has_value();
}

bool is_dns_name(std::string_view host) noexcept {
  if (host.empty() || host.size() > 253 || host.back() == '.' || host.front() == '.') return false;
  return std::ranges::all_of(host, [](char each) {
    return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
           (each >= '0' && each <= '9') || each == '-' || each == '_' || each == '.';
  });
}

Failure rejection_of(x509_store_ctx_st& verification, std::string_view host) {
  const int code = X509_STORE_CTX_get_error(&verification);
  const X509* const certificate = X509_STORE_CTX_get_current_cert(&verification);
  if (certificate == nullptr) {
    return Failure(Error::certificate_rejected, X509_verify_cert_error_string(code));
  }
  const std::string subject = subject_of(*certificate);
  const std::string about = subject.empty() ? "the certificate" : subject;
  switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return Failure(Error::certificate_expired,
                     about + " has expired on " + to_text(not_after_of(*certificate)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return Failure(Error::certificate_not_yet_valid,
                     about + " is valid from " + to_text(not_before_of(*certificate)));
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return Failure(Error::wrong_name,
                     std::string(host) + " is not among " + joined(names_of(*certificate)));
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return Failure(Error::certificate_self_signed, about);
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return Failure(Error::unknown_ca, "no trusted CA for " + about + ", which names " +
                                            name_text(X509_get_issuer_name(certificate)));
    default:
      return Failure(Error::certificate_rejected,
                     about + ": " + X509_verify_cert_error_string(code));
  }
}

}  // namespace weir::tls::detail
