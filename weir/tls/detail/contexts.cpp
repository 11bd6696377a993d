#include "weir/tls/detail/contexts.hpp"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <new>
#include <span>
#include <utility>

#include "weir/net/dns/detail/host_name.hpp"
#include "weir/tls/certificate/detail/certificate.hpp"
#include "weir/tls/crypto/detail/hmac.hpp"
#include "weir/tls/crypto/detail/library_context.hpp"
#include "weir/tls/crypto/detail/random.hpp"
#include "weir/tls/detail/records/key_provider.hpp"
#include "weir/tls/detail/session_cache.hpp"
#include "weir/tls/detail/session_proof.hpp"
#include "weir/tls/detail/ssl_engine.hpp"

namespace weir::tls::detail {
namespace {

// The longest lifetimes of sessions. The keys of tickets are accepted for at least 8 h; see
// TicketKeys. A client keeps no ticket for more than 7 days (RFC 8446 §4.6.1).
constexpr Duration server_lifetime_max = std::chrono::hours(8);
constexpr Duration client_lifetime_max = std::chrono::days(7);

// Groups of the key exchange. OpenSSL's default has finite fields too, where a client of one packet
// makes the server compute for 100 ms (ffdhe8192). TLS 1.2 also needs the groups of certificates.
constexpr const char* server_groups = "X25519:P-256:P-384";
constexpr const char* client_groups = "X25519:P-256:P-384:P-521";

std::unexpected<Failure> library_failure() {
  return std::unexpected(Failure(Error::library_failure, take_openssl_error()));
}
std::unexpected<Failure> invalid(std::string text) {
  return std::unexpected(Failure(Error::invalid_options, std::move(text)));
}

// The longest handshake message (RFC 8446, 4).
constexpr std::size_t input_bytes_allowed = std::size_t{1} << 24;

Outcome<> check_limits(const HandshakeLimits& limits) {
  if (limits.concurrency_max == 0) return invalid("concurrency_max is 0");
  if (limits.timeout <= Duration::zero()) return invalid("the timeout of handshakes is 0");
  if (limits.rate && !RateLimiter::check(*limits.rate)) {
    return invalid("the rate of handshakes is 0 or out of range");
  }
  if (limits.input_bytes_max == 0 || limits.input_bytes_max > input_bytes_allowed) {
    return invalid("input_bytes_max is 0 or above 16 MiB");
  }
  return {};
}

Outcome<> check_lifetime(Duration lifetime, Duration lifetime_max) {
  if (lifetime >= std::chrono::seconds(1) && lifetime <= lifetime_max) return {};
  return invalid("session_lifetime is below 1 s or above " +
                 std::to_string(std::chrono::floor<std::chrono::hours>(lifetime_max).count()) +
                 " h");
}

/// Makes a context with the settings that both sides share.
Outcome<SslContextPtr> make_common(const SSL_METHOD* method, TlsVersion version_min, bool tickets,
                                   RecordCode records) {
  if (openssl_has_ended()) return ended_openssl();
  ERR_clear_error();
  use_simulated_random();
  const char* const provider = records == RecordCode::weir ? use_key_provider() : nullptr;
  SslContextPtr context(SSL_CTX_new_ex(library_context(), provider, method));
  if (context == nullptr) return library_failure();
  SSL_CTX* const ctx = context.get();
  const int lowest = version_min == TlsVersion::tls_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
  // Only suites with authenticated encryption and forward secrecy. RFC 9325, 4.2. AES-128 comes
  // first, as in Go and BoringSSL: its rounds and SHA-256 cost less than AES-256 and SHA-384.
  const bool set =
      SSL_CTX_set_min_proto_version(ctx, lowest) == 1 &&
      SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_cipher_list(
          ctx, "ECDHE+AES128+AESGCM:ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL:!PSK:!SRP") == 1 &&
      SSL_CTX_set_ciphersuites(ctx,
                               "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                               "TLS_CHACHA20_POLY1305_SHA256") == 1;
  if (!set) return library_failure();
  SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                               SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                               (tickets ? 0 : SSL_OP_NO_TICKET));
  // Without SSL_MODE_ENABLE_PARTIAL_WRITE one call writes all records that a peer's
  // max_fragment_length makes of the data (RFC 6066, 4).
  // An identity sends its own chain, and nothing that the trusted CAs would add.
  SSL_CTX_set_mode(ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_read_ahead(ctx, 0);
  return context;
}

/// Sets the groups of the key exchange, the preferred one first.
bool use_groups(SSL_CTX& context, const std::string& groups) {
  // OpenSSL 3.5 and later have a group that resists quantum computers.
  if (SSL_CTX_set1_groups_list(&context, ("X25519MLKEM768:" + groups).c_str()) == 1) return true;
  ERR_clear_error();
  return SSL_CTX_set1_groups_list(&context, groups.c_str()) == 1;
}

/// Returns true if a signature with the key takes over a millisecond: RSA above 2048 bits.
bool signs_slowly(const EVP_PKEY& key) {
  const int kind = EVP_PKEY_get_base_id(&key);
  return (kind == EVP_PKEY_RSA || kind == EVP_PKEY_RSA_PSS) && EVP_PKEY_get_bits(&key) > 2048;
}

/// OpenSSL calls it before it uses the certificate, unless a ticket replaces it. The result -1
/// ends the step, and the next one calls it again.
int on_certificate(SSL* ssl, void*) {
  return SslEngine::of(*ssl).may_sign() ? 1 : -1;
}

Outcome<> use_identity(SSL_CTX& context, const Identity& identity) {
  auto chain = read_certificates(identity.chain());
  if (!chain) return std::unexpected(std::move(chain.error()));
  auto key = read_key(identity.key());
  if (!key) return std::unexpected(std::move(key.error()));
  bool set = SSL_CTX_use_certificate(&context, chain->front().get()) == 1 &&
             SSL_CTX_use_PrivateKey(&context, key->get()) == 1;
  for (std::size_t index = 1; set && index < chain->size(); ++index) {
    set = SSL_CTX_add1_chain_cert(&context, (*chain)[index].get()) == 1;
  }
  if (!set) {
    return std::unexpected(Failure(Error::invalid_certificate, take_openssl_error()));
  }
  if (signs_slowly(**key)) SSL_CTX_set_cert_cb(&context, &on_certificate, nullptr);
  return {};
}

/// Returns the protocols in the form of RFC 7301.
Outcome<std::vector<unsigned char>> to_wire(const std::vector<std::string>& protocols) {
  std::vector<unsigned char> wire;
  for (const std::string& each : protocols) {
    if (each.empty() || each.size() > 255) return invalid("a protocol of ALPN has 1 to 255 bytes");
    wire.push_back(static_cast<unsigned char>(each.size()));
    wire.insert(wire.end(), each.begin(), each.end());
  }
  if (wire.size() > 65535) return invalid("too many protocols of ALPN");
  return wire;
}

// --- callbacks of a server: OpenSSL is C, so no exception may leave them.
// -------------------------

/// Returns the name of the server_name extension (RFC 6066 §3); empty for none or a malformed one,
/// which OpenSSL rejects.
std::string_view asked_name_of(SSL* ssl) {
  const unsigned char* data = nullptr;
  std::size_t size = 0;
  // A list with one element: its size in bytes, the type 0, the size of the name, and the name.
  constexpr std::size_t head = 5;
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &data, &size) != 1) return {};
  if (size <= head || data[2] != TLSEXT_NAMETYPE_host_name) return {};
  const std::size_t name_size = static_cast<std::size_t>(data[3]) << 8 | data[4];
  if (name_size != size - head) return {};
  return {reinterpret_cast<const char*>(data) + head, name_size};
}

/// OpenSSL calls it for each ClientHello, before it looks at a ticket. Afterwards, OpenSSL has only
/// the name of the session for a resumed one of TLS 1.2.
int on_client_hello(SSL* ssl, int* alert, void*) {
  try {
    SslEngine::of(*ssl).set_asked_name(asked_name_of(ssl));
    return SSL_CLIENT_HELLO_SUCCESS;
  } catch (const std::bad_alloc&) {
    *alert = SSL_AD_INTERNAL_ERROR;
    return SSL_CLIENT_HELLO_ERROR;
  }
}

int on_server_name(SSL* ssl, int* alert, void* argument) {
  const auto& contexts = *static_cast<const ServerContexts*>(argument);
  const char* const name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name == nullptr) return SSL_TLSEXT_ERR_OK;
  try {
    const std::string wanted = dns::normal_host(name);
    if (SSL_CTX* const found = contexts.find(wanted)) {
      if (found != SSL_get_SSL_CTX(ssl)) SSL_set_SSL_CTX(ssl, found);
      return SSL_TLSEXT_ERR_OK;
    }
    if (contexts.options().unknown_name == UnknownName::first_identity) return SSL_TLSEXT_ERR_OK;
    const std::string text = is_dns_name(wanted) ? wanted : "a malformed name";
    SslEngine::of(*ssl).reject(Failure(Error::unknown_server_name, text));
  } catch (const std::bad_alloc&) {
    *alert = SSL_AD_INTERNAL_ERROR;
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *alert = SSL_AD_UNRECOGNIZED_NAME;
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

int on_protocols(SSL*, const unsigned char** out, unsigned char* out_size,
                 const unsigned char* offered, unsigned offered_size, void* argument) {
  const auto& contexts = *static_cast<const ServerContexts*>(argument);
  for (const std::string& each : contexts.options().protocols) {
    for (unsigned offset = 0; offset < offered_size; offset += 1U + offered[offset]) {
      const std::string_view name(reinterpret_cast<const char*>(offered) + offset + 1,
                                  offered[offset]);
      if (name != each) continue;
      *out = offered + offset + 1;
      *out_size = offered[offset];
      return SSL_TLSEXT_ERR_OK;
    }
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/// Returns the cipher of tickets. EVP_aes_256_cbc() would be looked up by name for each ticket.
const EVP_CIPHER* ticket_cipher() {
  static const EVP_CIPHER* const cipher =
      EVP_CIPHER_fetch(library_context(), "AES-256-CBC", nullptr);
  return cipher;
}

bool set_mac_key(EVP_MAC_CTX* mac, const TicketKey& key) {
  char digest[] = "SHA256";
  auto* const secret = const_cast<std::uint8_t*>(key.mac.data());
  const std::array<OSSL_PARAM, 3> parameters{
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, secret, key.mac.size()),
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_end()};
  return EVP_MAC_CTX_set_params(mac, parameters.data()) == 1;
}

/// Returns the key with this name, or nullptr.
const TicketKey* find_key(const TicketKeys& keys, const unsigned char* name) {
  const auto matches = [name](const TicketKey& key) {
    return std::memcmp(key.name.data(), name, key.name.size()) == 0;
  };
  if (matches(keys.current)) return &keys.current;
  if (keys.previous && matches(*keys.previous)) return &*keys.previous;
  if (keys.next && matches(*keys.next)) return &*keys.next;
  return nullptr;
}

/// Returns 1 to use a ticket, 2 to also replace it, 0 to ignore it, -1 after an error.
int on_ticket(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
              EVP_MAC_CTX* mac, int encrypts) {
  // A name may have switched the connection to another context of the same server.
  SSL_CTX* const context = SSL_get_SSL_CTX(ssl);
  const auto& contexts = *static_cast<const ServerContexts*>(SSL_CTX_get_app_data(context));
  const std::shared_ptr<const TicketKeys> held = contexts.ticket_keys();
  const TicketKeys& keys = *held;
  if (encrypts != 0) {
    const TicketKey& key = keys.current;
    std::memcpy(name, key.name.data(), key.name.size());
    const bool set =
        fill_random(std::as_writable_bytes(std::span(iv, 16))) &&
        EVP_EncryptInit_ex(cipher, ticket_cipher(), nullptr, key.cipher.data(), iv) == 1 &&
        set_mac_key(mac, key);
    return set ? 1 : -1;
  }
  const TicketKey* const key = find_key(keys, name);
  if (key == nullptr) return 0;
  const bool set = set_mac_key(mac, *key) && EVP_DecryptInit_ex(cipher, ticket_cipher(), nullptr,
                                                                key->cipher.data(), iv) == 1;
  if (!set) return -1;
  // A client uses a ticket of TLS 1.3 once, so it needs another.
  return key == &keys.current && SSL_version(ssl) != TLS1_3_VERSION ? 1 : 2;
}

long kernel_seconds() {
  return static_cast<long>(std::time(nullptr));
}

Duration session_lifetime_of(const SSL* ssl) {
  // A name may have switched the connection to another context of the same server.
  SSL_CTX* const context = SSL_get_SSL_CTX(ssl);
  return static_cast<const ServerContexts*>(SSL_CTX_get_app_data(context))
      ->options()
      .session_lifetime;
}

/// OpenSSL calls it for each ticket that it makes. A ticket has the time of the platform; OpenSSL
/// uses the clock of the kernel. A new ticket of a resumed session ends with its first ticket.
int on_new_ticket(SSL* ssl, void*) {
  SSL_SESSION* const session = SSL_get0_session(ssl);
  const SslEngine& engine = SslEngine::of(*ssl);
  const SessionProof proof = engine.proof();
  // OpenSSL cannot encode the timeout 0. The proof ends the session anyway.
  constexpr std::int64_t timeout_min = 1;
  const std::int64_t left = proof.seconds_left(engine.seconds(), session_lifetime_of(ssl));
  if (!proof.put_into(*session)) return 0;
  SSL_SESSION_set_time(session, engine.seconds());
  SSL_SESSION_set_timeout(session, static_cast<long>(std::max(left, timeout_min)));
  return 1;
}

/// OpenSSL calls it for each ticket of a client. A full handshake follows if the ticket is ignored.
SSL_TICKET_RETURN on_session_of_ticket(SSL* ssl, SSL_SESSION* session, const unsigned char*,
                                       std::size_t, SSL_TICKET_STATUS status, void*) {
  const bool known = status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW;
  if (!known) return SSL_TICKET_RETURN_IGNORE_RENEW;
  const bool required = (SSL_get_verify_mode(ssl) & SSL_VERIFY_FAIL_IF_NO_PEER_CERT) != 0;
  const bool missing = required && SSL_SESSION_get0_peer(session) == nullptr;
  const SslEngine& engine = SslEngine::of(*ssl);
  const long age = engine.seconds() - SSL_SESSION_get_time(session);
  const bool expired = age < 0 || age > SSL_SESSION_get_timeout(session);
  const bool proven = engine.is_current(*session, session_lifetime_of(ssl));
  try {
    const bool usable = !missing && !expired && proven && engine.has_asked_name(*session);
    if (!usable) return SSL_TICKET_RETURN_IGNORE_RENEW;
  } catch (const std::bad_alloc&) {
    return SSL_TICKET_RETURN_ABORT;
  }
  SSL_SESSION_set_time(session, kernel_seconds() - age);  // OpenSSL checks the age too
  return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

bool set_tickets(SSL_CTX& context, const ServerSnapshot& snapshot, ClientCertificates wanted) {
  // Tickets of a server with other rules for clients are of another session context, and ignored.
  // The rules are the trusted CAs and whether a certificate is needed.
  const std::string rules = std::to_string(static_cast<int>(wanted)) + snapshot.trust;
  std::array<unsigned char, 32> id{};
  digest(Hash::sha_256, to_bytes(rules), id);
  return SSL_CTX_set_session_id_context(&context, id.data(), static_cast<unsigned>(id.size())) ==
             1 &&
         SSL_CTX_set_tlsext_ticket_key_evp_cb(&context, &on_ticket) == 1 &&
         SSL_CTX_set_session_ticket_cb(&context, &on_new_ticket, &on_session_of_ticket, nullptr) ==
             1;
}

/// OpenSSL calls it for each ticket that a client receives. Returns 1 if the session is kept.
int on_session(SSL* ssl, SSL_SESSION* session) {
  try {
    return SslEngine::of(*ssl).keep_session(session) ? 1 : 0;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

}  // namespace

Outcome<std::unique_ptr<ServerContexts>> ServerContexts::make(
    const ServerOptions& options, std::shared_ptr<const ServerSnapshot> snapshot) {
  if (snapshot->identities.empty()) return invalid("a server needs an identity");
  const bool asks = options.client_certificates != ClientCertificates::none;
  if (asks && snapshot->trust.empty()) return invalid("client certificates need client_trust");
  if (!asks && !snapshot->trust.empty()) return invalid("client_trust needs client certificates");
  if (auto checked = check_limits(options.limits); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  if (options.hello_timeout <= Duration::zero()) return invalid("hello_timeout is 0");
  if (auto checked = check_lifetime(options.session_lifetime, server_lifetime_max); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  if (!options.tickets && !options.ticket_key_file.empty()) {
    return invalid("ticket_key_file needs tickets");
  }
  if (options.watch) {
    const bool has_files = !options.files.empty() || !options.client_trust.files.empty() ||
                           !options.ticket_key_file.empty();
    if (!has_files) return invalid("watch needs files");
    if (options.watch->poll_interval <= Duration::zero()) return invalid("poll_interval is 0");
  }
  if (auto wire = to_wire(options.protocols); !wire) {
    return std::unexpected(std::move(wire.error()));
  }
  std::unique_ptr<ServerContexts> made(new ServerContexts(options, std::move(snapshot)));
  for (const Identity& each : made->snapshot_->identities) {
    auto context = made->make_context(each);
    if (!context) return std::unexpected(std::move(context.error()));
    for (const std::string& name : each.names()) {
      made->by_name_.try_emplace(dns::normal_host(name), made->contexts_.size());
    }
    made->contexts_.push_back(std::move(*context));
  }
  return made;
}

Outcome<SslContextPtr> ServerContexts::make_context(const Identity& identity) {
  auto context =
      make_common(TLS_server_method(), options_.version_min, options_.tickets, options_.records);
  if (!context) return context;
  SSL_CTX& ctx = **context;
  if (!use_groups(ctx, server_groups)) return library_failure();
  if (auto used = use_identity(ctx, identity); !used) {
    return std::unexpected(std::move(used.error()));
  }
  if (options_.client_certificates != ClientCertificates::none) {
    const bool required = options_.client_certificates == ClientCertificates::required;
    SSL_CTX_set_verify(&ctx, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                       nullptr);
    SSL_CTX_set1_cert_store(&ctx, snapshot_->store.get());
    SSL_CTX_set_max_cert_list(&ctx, static_cast<long>(options_.limits.input_bytes_max));
  }
  if (!set_tickets(ctx, *snapshot_, options_.client_certificates)) return library_failure();
  SSL_CTX_set_session_cache_mode(&ctx, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_timeout(&ctx,
                      std::chrono::floor<std::chrono::seconds>(options_.session_lifetime).count());
  // TLS 1.3 sends tickets in spite of SSL_OP_NO_TICKET, but this server takes none back.
  if (!options_.tickets) SSL_CTX_set_num_tickets(&ctx, 0);
  SSL_CTX_set_app_data(&ctx, this);
  SSL_CTX_set_client_hello_cb(&ctx, &on_client_hello, nullptr);
  SSL_CTX_set_tlsext_servername_callback(&ctx, &on_server_name);
  SSL_CTX_set_tlsext_servername_arg(&ctx, this);
  if (!options_.protocols.empty()) SSL_CTX_set_alpn_select_cb(&ctx, &on_protocols, this);
  return context;
}

ssl_ctx_st* ServerContexts::find(std::string_view name) const {
  auto found = by_name_.find(std::string(name));
  const std::size_t dot = name.find('.');
  if (found == by_name_.end() && dot != std::string_view::npos) {
    found = by_name_.find("*" + std::string(name.substr(dot)));
  }
  return found == by_name_.end() ? nullptr : contexts_[found->second].get();
}

Outcome<SslContextPtr> make_client_context(const ClientOptions& options,
                                           const ClientSnapshot& snapshot) {
  if (auto checked = check_limits(options.limits); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  if (auto checked = check_lifetime(options.session_lifetime, client_lifetime_max); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  if (options.version_max < options.version_min) {
    return invalid("version_max is below version_min");
  }
  auto context =
      make_common(TLS_client_method(), options.version_min, options.tickets, RecordCode::weir);
  if (!context) return context;
  SSL_CTX& ctx = **context;
  if (!use_groups(ctx, client_groups)) return library_failure();
  if (options.version_max == TlsVersion::tls_1_2 &&
      SSL_CTX_set_max_proto_version(&ctx, TLS1_2_VERSION) != 1) {
    return library_failure();
  }
  if (options.identity) {
    if (auto used = use_identity(ctx, *options.identity); !used) {
      return std::unexpected(std::move(used.error()));
    }
  }
  if (options.verification != Verification::none) {
    SSL_CTX_set_verify(&ctx, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set1_cert_store(&ctx, snapshot.store.get());
  }
  auto wire = to_wire(options.protocols);
  if (!wire) return std::unexpected(std::move(wire.error()));
  // This function returns 0 for success.
  if (!wire->empty() &&
      SSL_CTX_set_alpn_protos(&ctx, wire->data(), static_cast<unsigned>(wire->size())) != 0) {
    return library_failure();
  }
  SSL_CTX_set_session_cache_mode(&ctx, options.tickets
                                           ? SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL
                                           : SSL_SESS_CACHE_OFF);
  SSL_CTX_sess_set_new_cb(&ctx, &on_session);
  return context;
}

Outcome<> check_dates(const Identity& identity, WallTime now) {
  const std::string name = identity.names().empty() ? "the certificate" : identity.names().front();
  if (now < identity.not_before()) {
    return std::unexpected(Failure(Error::certificate_not_yet_valid,
                                   name + " is valid from " + to_text(identity.not_before())));
  }
  if (now > identity.not_after()) {
    return std::unexpected(Failure(Error::certificate_expired,
                                   name + " has expired on " + to_text(identity.not_after())));
  }
  return {};
}

}  // namespace weir::tls::detail
