#include "weir/tls/crypto/detail/library_context.hpp"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>

#include <cstdint>

namespace weir::tls::detail {
namespace {

OSSL_LIB_CTX* make_library_context() noexcept {
  if (openssl_has_ended()) return nullptr;
  // The provider for FIPS has parameters of its installation, which only the configuration of the
  // default context knows.
  const bool demands_fips = EVP_default_properties_is_fips_enabled(nullptr) == 1;
  OSSL_LIB_CTX* context = demands_fips ? nullptr : OSSL_LIB_CTX_new();
  // Another provider that is loaded first would replace the default one.
  if (context != nullptr && OSSL_PROVIDER_load(context, "default") == nullptr) {
    OSSL_LIB_CTX_free(context);
    context = nullptr;
  }
  ERR_clear_error();
  return context;
}

}  // namespace

ossl_lib_ctx_st* library_context() noexcept {
  static OSSL_LIB_CTX* const context = make_library_context();
  return context;
}

bool openssl_has_ended() noexcept {
  constexpr std::uint64_t nothing_more = 0;
  return OPENSSL_init_crypto(nothing_more, nullptr) != 1;
}

const evp_md_st* sha_256() noexcept {
  static const EVP_MD* const hash = EVP_MD_fetch(library_context(), "SHA256", nullptr);
  return hash;
}

}  // namespace weir::tls::detail
