#include "weir/tls/detail/records/key_provider.hpp"

#include <openssl/core.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "weir/base/detail/random_source.hpp"
#include "weir/tls/certificate/detail/openssl.hpp"
#include "weir/tls/crypto/detail/hmac.hpp"
#include "weir/tls/crypto/detail/library_context.hpp"
#include "weir/tls/detail/records/handshake_keys.hpp"
#include "weir/tls/detail/records/key_schedule.hpp"

namespace weir::tls::detail {
namespace {

constinit thread_local HandshakeKeys* receiver = nullptr;

// --- parameters ----------------------------------------------------------------------------------

Bytes bytes_of(const OSSL_PARAM& parameter) noexcept {
  return {static_cast<const std::byte*>(parameter.data), parameter.data_size};
}
std::string_view text_of(const OSSL_PARAM& parameter) noexcept {
  return {static_cast<const char*>(parameter.data), parameter.data_size};
}

/// Returns the hash with a name that OpenSSL uses.
std::optional<Hash> hash_of(std::string_view name) noexcept {
  if (name == "SHA256" || name == "SHA2-256" || name == "SHA-256") return Hash::sha_256;
  if (name == "SHA384" || name == "SHA2-384" || name == "SHA-384") return Hash::sha_384;
  return std::nullopt;
}

/// The parameters of one derivation.
struct Parameters {
  std::optional<Hash> hash;
  int mode = -1;
  Bytes key;  // the secret of the PRF too
  Bytes salt;
  Bytes data;
  std::string_view prefix;
  std::string_view label;
  std::array<Bytes, 8> seeds;
  std::size_t seed_count = 0;

  /// Returns false if a parameter is unknown or wrong.
  bool take(const OSSL_PARAM& parameter) noexcept {
    const std::string_view name = parameter.key;
    if (name == OSSL_KDF_PARAM_DIGEST) {
      hash = hash_of(text_of(parameter));
    } else if (name == OSSL_KDF_PARAM_MODE) {
      return OSSL_PARAM_get_int(&parameter, &mode) == 1;
    } else if (name == OSSL_KDF_PARAM_KEY || name == OSSL_KDF_PARAM_SECRET) {
      key = bytes_of(parameter);
    } else if (name == OSSL_KDF_PARAM_SALT) {
      salt = bytes_of(parameter);
    } else if (name == OSSL_KDF_PARAM_DATA) {
      data = bytes_of(parameter);
    } else if (name == OSSL_KDF_PARAM_PREFIX) {
      prefix = text_of(parameter);
    } else if (name == OSSL_KDF_PARAM_LABEL) {
      label = text_of(parameter);
    } else if (name == OSSL_KDF_PARAM_SEED) {
      if (seed_count == seeds.size()) return false;
      seeds[seed_count++] = bytes_of(parameter);
    } else {
      return name == OSSL_KDF_PARAM_PROPERTIES;  // of the hash
    }
    return true;
  }
  bool take_all(const OSSL_PARAM* parameter) noexcept {
    if (parameter == nullptr) return false;
    for (; parameter->key != nullptr; ++parameter) {
      if (!take(*parameter)) return false;
    }
    return hash.has_value();
  }
};

// --- the functions of OpenSSL's dispatch tables: they return 1 for success -----------------------

/// A derivation keeps nothing between its calls: libssl passes all parameters in one call.
void* make_context(void* provider) noexcept {
  return provider;
}
void free_context(void*) noexcept {}
void reset_context(void*) noexcept {}

/// OSSL_KDF_NAME_TLS1_3_KDF: HKDF-Expand-Label, or the next secret of the key schedule.
int derive_1_3(void*, unsigned char* out, std::size_t size, const OSSL_PARAM* parameters) noexcept {
  Parameters given;
  if (!given.take_all(parameters) || given.prefix != "tls13 ") return 0;
  const std::span target(out, size);
  const std::size_t digest_bytes = digest_bytes_of(*given.hash);
  if (given.mode == EVP_KDF_HKDF_MODE_EXTRACT_ONLY) {
    if (size != digest_bytes || given.label != "derived") return 0;
    next_secret(*given.hash, given.salt, given.key, target);
    return 1;
  }
  const bool fits = size <= 255 * digest_bytes && given.label.size() <= 249 &&
                    given.data.size() <= 255 && !given.key.empty();
  if (given.mode != EVP_KDF_HKDF_MODE_EXPAND_ONLY || !fits) return 0;
  expand_label(*given.hash, given.key, given.label, given.data, target);
  if (receiver == nullptr) return 1;
  // RFC 8446, 7.1.
  if (given.label == "c ap traffic") receiver->take_client_secret(std::as_bytes(target));
  if (given.label == "s ap traffic") receiver->take_server_secret(std::as_bytes(target));
  return 1;
}

/// OSSL_KDF_NAME_TLS1_PRF.
int derive_1_2(void*, unsigned char* out, std::size_t size, const OSSL_PARAM* parameters) noexcept {
  Parameters given;
  if (!given.take_all(parameters) || given.seed_count == 0) return 0;
  pseudorandom(*given.hash, given.key, std::span(given.seeds).first(given.seed_count), {out, size});
  return 1;
}

/// HMAC with a hash that the parameters name.
class Mac {
 public:
  bool set(const OSSL_PARAM* parameters) noexcept {
    if (parameters == nullptr) return true;
    const OSSL_PARAM* const digest = OSSL_PARAM_locate_const(parameters, OSSL_MAC_PARAM_DIGEST);
    if (digest != nullptr) {
      hmac_.reset();
      hash_ = hash_of(text_of(*digest));
      if (!hash_) return false;
    }
    const OSSL_PARAM* const key = OSSL_PARAM_locate_const(parameters, OSSL_MAC_PARAM_KEY);
    return key == nullptr || begin(bytes_of(*key));
  }
  bool begin(Bytes key) noexcept {
    if (!hash_) return false;
    hmac_.emplace(*hash_, key);
    return true;
  }
  /// Begins another message with the same key.
  bool begin_again() noexcept {
    if (hmac_) hmac_->restart();
    return hmac_.has_value();
  }
  Hmac* hmac() noexcept { return hmac_ ? &*hmac_ : nullptr; }
  std::size_t size() const noexcept { return hash_ ? digest_bytes_of(*hash_) : 0; }

 private:
  std::optional<Hash> hash_;
  std::optional<Hmac> hmac_;
};

void* make_mac(void*) noexcept {
  return new (std::nothrow) Mac;
}
void* copy_mac(void* mac) noexcept {
  return new (std::nothrow) Mac(*static_cast<Mac*>(mac));
}
void free_mac(void* mac) noexcept {
  delete static_cast<Mac*>(mac);
}
int set_mac(void* mac, const OSSL_PARAM* parameters) noexcept {
  return static_cast<Mac*>(mac)->set(parameters) ? 1 : 0;
}
int begin_mac(void* mac, const unsigned char* key, std::size_t size,
              const OSSL_PARAM* parameters) noexcept {
  Mac& used = *static_cast<Mac*>(mac);
  if (!used.set(parameters)) return 0;
  const bool begun =
      key == nullptr ? used.begin_again() : used.begin(std::as_bytes(std::span(key, size)));
  return begun ? 1 : 0;
}
int update_mac(void* mac, const unsigned char* data, std::size_t size) noexcept {
  Hmac* const hmac = static_cast<Mac*>(mac)->hmac();
  if (hmac == nullptr) return 0;
  hmac->update(std::span(data, size));
  return 1;
}
int finish_mac(void* mac, unsigned char* out, std::size_t* size, std::size_t room) noexcept {
  Mac& used = *static_cast<Mac*>(mac);
  if (used.hmac() == nullptr || room < used.size()) return 0;
  used.hmac()->finish({out, used.size()});
  *size = used.size();
  return 1;
}
int get_mac_size(void* mac, OSSL_PARAM* parameters) noexcept {
  OSSL_PARAM* const size = OSSL_PARAM_locate(parameters, OSSL_MAC_PARAM_SIZE);
  return size == nullptr ? 1 : OSSL_PARAM_set_size_t(size, static_cast<Mac*>(mac)->size());
}
const OSSL_PARAM* readable_of_mac(void*, void*) noexcept {
  static const std::array names{OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, nullptr),
                                OSSL_PARAM_construct_end()};
  return names.data();
}
const OSSL_PARAM* settable_of_mac(void*, void*) noexcept {
  static const std::array names{OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, nullptr, 0),
                                OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, nullptr, 0),
                                OSSL_PARAM_construct_end()};
  return names.data();
}

using Function = void (*)();
template <class Typed>
OSSL_DISPATCH entry(int number, Typed* function) noexcept {
  return {number, reinterpret_cast<Function>(function)};
}

const OSSL_ALGORITHM* query(void*, int operation, int* no_cache) noexcept {
  static const auto dispatch = [](OSSL_FUNC_kdf_derive_fn* derive) {
    return std::array{entry(OSSL_FUNC_KDF_NEWCTX, &make_context),
                      entry(OSSL_FUNC_KDF_FREECTX, &free_context),
                      entry(OSSL_FUNC_KDF_RESET, &reset_context),
                      entry(OSSL_FUNC_KDF_DERIVE, derive), OSSL_DISPATCH{}};
  };
  static const auto functions_1_3 = dispatch(&derive_1_3);
  static const auto functions_1_2 = dispatch(&derive_1_2);
  static const std::array<OSSL_ALGORITHM, 3> derivations{
      OSSL_ALGORITHM{OSSL_KDF_NAME_TLS1_3_KDF, "provider=weir", functions_1_3.data(), nullptr},
      OSSL_ALGORITHM{OSSL_KDF_NAME_TLS1_PRF, "provider=weir", functions_1_2.data(), nullptr},
      OSSL_ALGORITHM{}};
  static const std::array functions_of_mac{
      entry(OSSL_FUNC_MAC_NEWCTX, &make_mac),
      entry(OSSL_FUNC_MAC_DUPCTX, &copy_mac),
      entry(OSSL_FUNC_MAC_FREECTX, &free_mac),
      entry(OSSL_FUNC_MAC_INIT, &begin_mac),
      entry(OSSL_FUNC_MAC_UPDATE, &update_mac),
      entry(OSSL_FUNC_MAC_FINAL, &finish_mac),
      entry(OSSL_FUNC_MAC_GETTABLE_CTX_PARAMS, &readable_of_mac),
      entry(OSSL_FUNC_MAC_GET_CTX_PARAMS, &get_mac_size),
      entry(OSSL_FUNC_MAC_SETTABLE_CTX_PARAMS, &settable_of_mac),
      entry(OSSL_FUNC_MAC_SET_CTX_PARAMS, &set_mac),
      OSSL_DISPATCH{}};
  static const std::array<OSSL_ALGORITHM, 2> macs{
      OSSL_ALGORITHM{"HMAC", "provider=weir", functions_of_mac.data(), nullptr}, OSSL_ALGORITHM{}};
  *no_cache = 0;
  if (operation == OSSL_OP_MAC) return macs.data();
  return operation == OSSL_OP_KDF ? derivations.data() : nullptr;
}

int begin(const OSSL_CORE_HANDLE*, const OSSL_DISPATCH*, const OSSL_DISPATCH** functions,
          void** provider) noexcept {
  static const std::array made{entry(OSSL_FUNC_PROVIDER_QUERY_OPERATION, &query), OSSL_DISPATCH{}};
  static char object = 0;  // OpenSSL asks for one
  *functions = made.data();
  *provider = &object;
  return 1;
}

OSSL_PROVIDER* load() noexcept {
  OSSL_LIB_CTX* const context = library_context();
  if (context == nullptr) return nullptr;  // the provider never joins the context of the program
  // A fetch without a property query takes the provider that was asked first. Code of OpenSSL in
  // this context fetches HMAC for other hashes, which this provider does not have.
  EVP_MAC_free(EVP_MAC_fetch(context, OSSL_MAC_NAME_HMAC, nullptr));
  EVP_KDF_free(EVP_KDF_fetch(context, OSSL_KDF_NAME_TLS1_3_KDF, nullptr));
  EVP_KDF_free(EVP_KDF_fetch(context, OSSL_KDF_NAME_TLS1_PRF, nullptr));
  ERR_clear_error();
  if (OSSL_PROVIDER_add_builtin(context, "weir", &begin) != 1) return nullptr;
  return OSSL_PROVIDER_load(context, "weir");
}

// --- the trial -----------------------------------------------------------------------------------

constexpr std::array<unsigned char, 32> trial_key{};

class TrialRandom final : public weir::detail::RandomSource {
 public:
  /// Knuth's linear congruential generator.
  std::uint64_t random() noexcept override {
    return state_ = state_ * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
  }

 private:
  std::uint64_t state_ = 1;
};

unsigned give_key(unsigned char* target, unsigned room) noexcept {
  if (room < trial_key.size()) return 0;
  std::ranges::copy(trial_key, target);
  return trial_key.size();
}
unsigned key_of_client(SSL*, const char*, char* name, unsigned name_room, unsigned char* target,
                       unsigned room) noexcept {
  if (name_room < 2) return 0;
  name[0] = 't';
  name[1] = '\0';
  return give_key(target, room);
}
unsigned key_of_server(SSL*, const char*, unsigned char* target, unsigned room) noexcept {
  return give_key(target, room);
}

/// Performs a handshake of `version` in memory, with a shared key instead of a certificate.
bool performs_handshake(const char* query, int version) noexcept {
  const SslContextPtr context(SSL_CTX_new_ex(library_context(), query, TLS_method()));
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), version) != 1 ||
      SSL_CTX_set_max_proto_version(context.get(), version) != 1 ||
      SSL_CTX_set_cipher_list(context.get(), "PSK-AES128-GCM-SHA256") != 1) {
    return false;
  }
  SSL_CTX_set_psk_client_callback(context.get(), &key_of_client);
  SSL_CTX_set_psk_server_callback(context.get(), &key_of_server);
  const SslPtr client(SSL_new(context.get()));
  const SslPtr server(SSL_new(context.get()));
  BIO* client_end = nullptr;
  BIO* server_end = nullptr;
  if (client == nullptr || server == nullptr ||
      BIO_new_bio_pair(&client_end, 0, &server_end, 0) != 1) {
    return false;
  }
  SSL_set_bio(client.get(), client_end, client_end);
  SSL_set_bio(server.get(), server_end, server_end);
  SSL_set_connect_state(client.get());
  SSL_set_accept_state(server.get());
  constexpr int flights = 4;  // TLS 1.2 has four, TLS 1.3 three
  for (int flight = 0; flight < flights; ++flight) {
    SSL_do_handshake(client.get());
    SSL_do_handshake(server.get());
  }
  return SSL_is_init_finished(client.get()) == 1 && SSL_is_init_finished(server.get()) == 1;
}

}  // namespace

bool performs_handshakes(const char* query) noexcept {
  TrialRandom random;
  const weir::detail::RandomSource::Use use(random);  // takes no number of a simulation
  const bool good =
      performs_handshake(query, TLS1_2_VERSION) && performs_handshake(query, TLS1_3_VERSION);
  ERR_clear_error();
  return good;
}

const char* use_key_provider() noexcept {
  static constexpr const char* preferred = "?provider=weir";
  static const OSSL_PROVIDER* const loaded = load();
  static const bool usable = loaded != nullptr && performs_handshakes(preferred);
  return usable ? preferred : nullptr;
}

TrafficSecretReceiver::TrafficSecretReceiver(HandshakeKeys& keys) noexcept
    : outer_(std::exchange(receiver, &keys)) {}

TrafficSecretReceiver::~TrafficSecretReceiver() {
  receiver = outer_;
}

}  // namespace weir::tls::detail
