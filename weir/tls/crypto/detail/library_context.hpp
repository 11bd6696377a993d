// The library context of OpenSSL in which Weir works.
#pragma once

struct evp_md_st;
struct ossl_lib_ctx_st;

namespace weir::tls::detail {

/// Returns Weir's own OSSL_LIB_CTX. The first call makes it. Weir shares a process with programs
/// that use OpenSSL themselves: they may load providers, set default properties or configure the
/// default context, and neither side sees the other's providers and algorithms. All functions of
/// Weir that fetch an algorithm, read a key or draw random numbers take this context.
///
/// Nothing frees the context. OPENSSL_cleanup() of a program, which also runs at its exit,
/// therefore leaves objects of Weir usable and destructible that outlive it. Returns: nullptr, the
/// default context, if that one demands FIPS by its default properties at the first call, or if
/// OpenSSL fails. Its providers are then those of the program's configuration. Threads: any.
ossl_lib_ctx_st* library_context() noexcept;

/// Returns true after OPENSSL_cleanup(). Functions of OpenSSL that make something may crash then.
/// Those of Weir ask before they begin a handshake or read a key, and fail. Threads: any.
bool openssl_has_ended() noexcept;

/// Returns SHA-256 of this context; nullptr if OpenSSL has failed.
/// Threads: any.
const evp_md_st* sha_256() noexcept;

}  // namespace weir::tls::detail
