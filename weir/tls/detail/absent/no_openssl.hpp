// The error of everything that needs OpenSSL, in a build of Weir without it. The sources of this
// folder then stand for those that include OpenSSL (cmake/WeirParts.cmake).
#pragma once

#include <expected>

#include "weir/tls/certificate/error.hpp"

namespace weir::tls::detail {

inline constexpr char no_openssl_text[] = "this build of Weir has no OpenSSL";

inline std::unexpected<Failure> no_openssl() {
  return std::unexpected(Failure(Error::library_failure, no_openssl_text));
}

}  // namespace weir::tls::detail
