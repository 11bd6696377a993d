#include "weir/tls/detail/ssl_engine.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "weir/loop/contract/detail/platform.hpp"
#include "weir/net/dns/detail/host_name.hpp"
#include "weir/tls/certificate/detail/certificate.hpp"
#include "weir/tls/crypto/detail/library_context.hpp"
#include "weir/tls/crypto/detail/random.hpp"
#include "weir/tls/detail/records/key_provider.hpp"
#include "weir/tls/detail/session_cache.hpp"

namespace weir::tls::detail {

/// The functions of Weir's BIO. OpenSSL is C: no exception may leave them.
struct EngineBio {
  static SslEngine& engine_of(BIO* bio) { return *static_cast<SslEngine*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* target, int size) {
    BIO_clear_retry_flags(bio);
    SslEngine& engine = engine_of(bio);
    if (engine.input_ == nullptr || engine.input_->empty() || engine.violation_) {
      BIO_set_retry_read(bio);
      return -1;
    }
    Buffer& input = *engine.input_;
    const std::size_t count = std::min(static_cast<std::size_t>(size), input.size());
    std::memcpy(target, input.data(), count);
    input.consume(count);
    return static_cast<int>(count);
  }

  static int write(BIO* bio, const char* data, int size) {
    BIO_clear_retry_flags(bio);
    SslEngine& engine = engine_of(bio);
    if (engine.output_ == nullptr) return -1;
    if (engine.answers_ > SslEngine::answers_max) return size;  // the connection ends with an error
    const auto count = static_cast<std::size_t>(size);
    try {
      if (engine.output_->owns_memory()) {
        engine.output_->make_room(count);
      } else {
        // The first record of an answer is often the only one.
        *engine.output_ = Buffer::with_capacity(static_cast<std::uint32_t>(count));
      }
    } catch (const std::bad_alloc&) {
      engine.out_of_memory_ = true;
      return -1;
    }
    std::memcpy(engine.output_->room().data(), data, count);
    engine.output_->commit(count);
    return size;
  }

  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  /// Returns the method, which all connections of the process share.
  static const BIO_METHOD* method() {
    static BIO_METHOD* const made = [] {
      BIO_METHOD* const fresh = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "weir");
      if (fresh != nullptr) {
        BIO_meth_set_read(fresh, &read);
        BIO_meth_set_write(fresh, &write);
        BIO_meth_set_ctrl(fresh, &control);
      }
      return fresh;
    }();
    return made;
  }
};

/// Lends the buffers of one call to the BIO.
class SslEngine::Use {
 public:
  Use(SslEngine& engine, Buffer* input, Buffer* output) noexcept : engine_(engine) {
    ERR_clear_error();
    engine.input_ = input;
    engine.output_ = output;
  }
  ~Use() {
    engine_.input_ = engine_.output_ = nullptr;
    ERR_clear_error();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  SslEngine& engine_;
};

Outcome<std::unique_ptr<SslEngine>> SslEngine::make(ssl_ctx_st& context, Side side) {
  if (openssl_has_ended()) return ended_openssl();
  ERR_clear_error();
  SslPtr ssl(SSL_new(&context));
  const BIO_METHOD* const method = EngineBio::method();
  BIO* const bio = ssl == nullptr || method == nullptr ? nullptr : BIO_new(method);
  if (bio == nullptr) return std::unexpected(Failure(Error::library_failure, take_openssl_error()));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl.get(), bio, bio);
  auto engine = std::unique_ptr<SslEngine>(new SslEngine(std::move(ssl), side));
  BIO_set_data(bio, engine.get());
  SSL_set_app_data(engine->ssl_.get(), engine.get());
  SSL_set_verify(engine->ssl_.get(), SSL_CTX_get_verify_mode(&context), &on_verified);
  SSL_set_msg_callback(engine->ssl_.get(), &count_handshake_record);
  side == Side::server ? SSL_set_accept_state(engine->ssl_.get())
                       : SSL_set_connect_state(engine->ssl_.get());
  return engine;
}

SslEngine::~SslEngine() {
  // OpenSSL would mark the session of a connection without a close_notify as not resumable. It
  // writes nothing here.
  SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
}

SslEngine& SslEngine::of(const ssl_st& ssl) noexcept {
  return *static_cast<SslEngine*>(SSL_get_app_data(&ssl));
}

void SslEngine::set_clock(loop::Platform& clock) {
  clock_ = &clock;
  set_time(clock.wall_time());
}

void SslEngine::set_time(WallTime now) {
  time_ = now;
  X509_VERIFY_PARAM_set_time(SSL_get0_param(ssl_.get()), seconds());
}

long SslEngine::seconds() const noexcept {
  return std::chrono::floor<std::chrono::seconds>(time_).time_since_epoch().count();
}

void SslEngine::set_version_max(TlsVersion version) {
  SSL_set_max_proto_version(ssl_.get(),
                            version == TlsVersion::tls_1_2 ? TLS1_2_VERSION : TLS1_3_VERSION);
}

Outcome<> SslEngine::set_host(std::string_view name, bool checked,
                              std::shared_ptr<SessionCache> cache) {
  std::string host = dns::normal_host(name);
  const bool address = is_ip_address(host);
  if (!address && !is_dns_name(host)) {
    return std::unexpected(Failure(Error::invalid_options, "not a DNS name or an IP address"));
  }
  host_ = std::move(host);
  sessions_ = std::move(cache);
  bool set = address || SSL_set_tlsext_host_name(ssl_.get(), host_.c_str()) == 1;
  X509_VERIFY_PARAM* const rules = SSL_get0_param(ssl_.get());
  if (checked && address) {
    set = X509_VERIFY_PARAM_set1_ip_asc(rules, host_.c_str()) == 1 && set;
  } else if (checked) {
    X509_VERIFY_PARAM_set_hostflags(
        rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    set = X509_VERIFY_PARAM_set1_host(rules, host_.data(), host_.size()) == 1 && set;
  }
  SslSessionPtr session = sessions_ == nullptr ? nullptr : sessions_->take(host_);
  if (session != nullptr && is_current(*session, sessions_->lifetime())) {
    // OpenSSL sends the age of the ticket by the clock of the kernel, which no seed determines.
    if (in_simulation()) SSL_SESSION_set_time(session.get(), static_cast<long>(std::time(nullptr)));
    SSL_set_session(ssl_.get(), session.get());
    // A server of TLS 1.2 sends no new ticket while the key of this one is current.
    const bool reusable = SSL_SESSION_get_protocol_version(session.get()) == TLS1_2_VERSION;
    if (reusable) sessions_->put(host_, std::move(session));
  }
  if (!set) return std::unexpected(Failure(Error::library_failure, take_openssl_error()));
  return {};
}

/// OpenSSL calls it for each certificate and each fault, and keeps no certificate afterwards.
int SslEngine::on_verified(int accepted, x509_store_ctx_st* verification) {
  if (accepted != 0) return accepted;
  const int index = SSL_get_ex_data_X509_STORE_CTX_idx();
  const auto* const ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(verification, index));
  SslEngine& engine = of(*ssl);
  if (SSL_get_verify_mode(ssl) == SSL_VERIFY_NONE) return 0;  // OpenSSL goes on
  try {
    if (!engine.rejection_) engine.rejection_.emplace(rejection_of(*verification, engine.host_));
  } catch (const std::bad_alloc&) {
    engine.out_of_memory_ = true;
  }
  return 0;
}

// --- the handshake -------------------------------------------------------------------------------

SslEngine::Step SslEngine::handshake(Buffer& input, Buffer& output) {
  const Use use(*this, &input, &output);
  const TrafficSecretReceiver receiver(keys_);
  const int result = SSL_do_handshake(ssl_.get());
  // A step uses the buffers for several records. A handshake that waits between two records has
  // none. OpenSSL before 3.0.14 must not free the buffer of an incomplete record: CVE-2024-4741.
  const bool between_records = std::string_view(SSL_rstate_string(ssl_.get())) == "RH";
  if (between_records && SSL_has_pending(ssl_.get()) == 0) SSL_free_buffers(ssl_.get());
  if (!output.empty()) keys_.take_output(output);
  if (result == 1) {
    // A peer has put more behind its Finished in the same record.
    if (SSL_has_pending(ssl_.get()) != 0) return fail_handshake(Error::bad_message);
    keep_resumed_session();
    SSL_set_msg_callback(ssl_.get(), &count_record);
    SSL_set_mode(ssl_.get(), SSL_MODE_RELEASE_BUFFERS);  // an idle connection has none
    return Step::finished;
  }
  const int error = SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_WANT_READ && !out_of_memory_) return Step::needs_input;
  if (error == SSL_ERROR_WANT_X509_LOOKUP && !out_of_memory_) return Step::signs;
  if (error == SSL_ERROR_ZERO_RETURN) return fail_handshake(Error::peer_left);
  return fail_handshake(failure_of_handshake());
}

SslEngine::Step SslEngine::sign(Buffer& input, Buffer& output) {
  may_sign_ = true;
  const Step step = handshake(input, output);
  may_sign_ = false;
  return step;
}

bool SslEngine::may_compute() const noexcept {
  const bool last = side_ == Side::server && finished_sent_;
  return !last || SSL_get_verify_mode(ssl_.get()) != SSL_VERIFY_NONE;
}

bool SslEngine::computed() const noexcept {
  const bool resumed = SSL_session_reused(ssl_.get()) == 1;
  return side_ == Side::client || !resumed || SSL_version(ssl_.get()) == TLS1_3_VERSION;
}

/// Keeps why the handshake has failed. A reason that a callback has set comes first.
SslEngine::Step SslEngine::fail_handshake(Failure failure) {
  if (!rejection_) rejection_.emplace(std::move(failure));
  error_ = rejection_->code();
  return Step::failed;
}

bool SslEngine::is_current(const ssl_session_st& session, Duration lifetime) const noexcept {
  const std::optional<SessionProof> proof = SessionProof::of_session(session);
  return proof && proof->seconds_left(seconds(), lifetime) >= 0;
}

SessionProof SslEngine::proof() const {
  const SSL_SESSION* const session = SSL_get_session(ssl_.get());
  const bool resumed = SSL_session_reused(ssl_.get()) == 1 && session != nullptr;
  const auto earlier = resumed ? SessionProof::of_session(*session) : std::nullopt;
  return earlier ? *earlier : SessionProof::of_handshake(*ssl_, seconds());
}

void SslEngine::set_asked_name(std::string_view name) {
  asked_name_ = dns::normal_host(name);
}

bool SslEngine::has_asked_name(const ssl_session_st& session) const {
  const char* const name = SSL_SESSION_get0_hostname(&session);
  return dns::normal_host(name == nullptr ? "" : name) == asked_name_;
}

bool SslEngine::may_hold_output() const noexcept {
  return side_ == Side::server && SSL_version(ssl_.get()) == TLS1_3_VERSION;
}

/// OpenSSL does not announce the ticket with which a server of TLS 1.2 replaces another one.
/// Without a new ticket, the session keeps the one that was used.
void SslEngine::keep_resumed_session() {
  SSL_SESSION* const session = SSL_get0_session(ssl_.get());
  const bool kept = sessions_ == nullptr || SSL_version(ssl_.get()) == TLS1_3_VERSION;
  if (kept || SSL_session_reused(ssl_.get()) != 1) return;
  SSL_SESSION_up_ref(session);
  sessions_->put(host_, SslSessionPtr(session));
}

std::optional<ConnectionKeys> SslEngine::keys() const {
  return side_ == Side::server ? keys_.keys_of(*ssl_) : std::nullopt;
}

/// OpenSSL calls it during the handshake for each header of a record and each message.
void SslEngine::count_handshake_record(int sent, int, int type, const void* bytes, std::size_t size,
                                       ssl_st* ssl, void*) {
  SslEngine& engine = of(*ssl);
  if (type == SSL3_RT_HANDSHAKE && sent != 0 && size != 0) {
    const auto message = *static_cast<const unsigned char*>(bytes);
    if (message == SSL3_MT_FINISHED) engine.finished_sent_ = true;
  }
  if (type != SSL3_RT_HEADER) return;
  HandshakeKeys& keys = engine.keys_;
  if (sent != 0) return keys.count_record();
  keys.count_received(*static_cast<const unsigned char*>(bytes) == SSL3_RT_CHANGE_CIPHER_SPEC);
}

bool SslEngine::keep_session(ssl_session_st* session) {
  if (sessions_ == nullptr || SSL_SESSION_is_resumable(session) != 1) return false;
  if (!proof().put_into(*session)) return false;
  // put() destroys the reference if it throws, so it gets one of its own.
  SSL_SESSION_up_ref(session);
  sessions_->put(host_, SslSessionPtr(session));
  SSL_SESSION_free(session);
  return true;
}

Failure SslEngine::take_failure() {
  return rejection_ ? std::move(*rejection_) : Failure(Error::library_failure);
}

Failure SslEngine::failure_of_handshake() const {
  if (out_of_memory_) return Failure(Error::library_failure, "out of memory");
  return failure_of_handshake_error(ERR_peek_error());
}

TlsInfo SslEngine::info() const {
  const SSL* const ssl = ssl_.get();
  TlsInfo info;
  info.version = SSL_version(ssl) == TLS1_3_VERSION ? TlsVersion::tls_1_3 : TlsVersion::tls_1_2;
  info.resumed = SSL_session_reused(ssl) == 1;
  const char* const cipher = SSL_CIPHER_standard_name(SSL_get_current_cipher(ssl));
  if (cipher != nullptr) info.cipher = cipher;
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl, &protocol, &size);
  if (size != 0) info.protocol.assign(reinterpret_cast<const char*>(protocol), size);
  const char* const name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  // Other bytes could forge lines of a log.
  std::string host = name == nullptr ? std::string() : dns::normal_host(name);
  if (is_dns_name(host)) info.server_name = std::move(host);
  const X509* const peer = SSL_get0_peer_certificate(ssl);
  if (peer != nullptr) info.peer = std::make_unique<const TlsPeer>(describe(*peer));
  return info;
}

bool SslEngine::has_verified_peer() const noexcept {
  return SSL_get_verify_mode(ssl_.get()) != SSL_VERIFY_NONE &&
         SSL_get0_peer_certificate(ssl_.get()) != nullptr;
}

/// OpenSSL calls it for each header of a record and each message of a handshake. Records without
/// data are tickets, KeyUpdates, warnings and empty ones. One call of OpenSSL may use many records,
/// so a violation ends its input and its output. The caller of OpenSSL returns the error.
void SslEngine::count_record(int sent, int, int type, const void* bytes, std::size_t size,
                             ssl_st* ssl, void*) {
  SslEngine& engine = of(*ssl);
  if (sent != 0) {
    const bool answers = type == SSL3_RT_HEADER && engine.input_ != nullptr;
    if (answers && ++engine.answers_ > answers_max) engine.violation_ = Error::record_flood;
  } else if (type == SSL3_RT_HEADER) {
    // The last one may have data, which resets the number.
    if (++engine.empty_records_ > empty_records_max + 1) engine.violation_ = Error::record_flood;
  } else if (type == SSL3_RT_HANDSHAKE && SSL_version(ssl) != TLS1_3_VERSION) {
    // OpenSSL answers each request of a renegotiation with a warning, and goes on.
    engine.violation_ = Error::bad_record;
  } else if (type == SSL3_RT_HANDSHAKE && size != 0) {
    const auto message = *static_cast<const unsigned char*>(bytes);
    if (message == SSL3_MT_KEY_UPDATE) engine.count_key_update();
  }
}

void SslEngine::count_key_update() {
  if (clock_ == nullptr) return;
  const Instant now = clock_->now();
  if (now - minute_ >= std::chrono::minutes(1)) {
    minute_ = now;
    key_updates_ = 0;
  }
  if (++key_updates_ > key_updates_max) violation_ = Error::record_flood;
}

// --- the records ---------------------------------------------------------------------------------

RecordLayer::Opened SslEngine::open(Buffer& input, Buffer& plain, Buffer& output) {
  assert(plain.empty());
  const Use use(*this, &input, &output);
  if (error_) return Opened::failed;
  // Small records need a small buffer only.
  const std::size_t wanted = std::clamp<std::size_t>(input.size(), 512, plain_max);
  for (;;) {
    if (plain.size() == plain.capacity() || plain.room().empty()) {
      if (!plain.empty()) return Opened::data;
      plain = Buffer::with_capacity(static_cast<std::uint32_t>(wanted));
    }
    const MutableBytes room = plain.room();
    std::size_t count = 0;
    const int result = SSL_read_ex(ssl_.get(), room.data(), room.size(), &count);
    if (result == 1) {
      empty_records_ = 0;
      plain.commit(count);
      if (!violation_) continue;
    }
    if (violation_) {
      error_ = violation_;
      if (!plain.empty()) return Opened::data;
      plain = {};
      return Opened::failed;
    }
    if (SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ && !out_of_memory_) {
      if (!plain.empty()) return Opened::data;
      plain = {};
      return Opened::none;
    }
    // OpenSSL reports an error once. The next call reports an end behind data.
    const Opened end = end_of(result);
    if (!plain.empty()) return Opened::data;
    plain = {};
    return end;
  }
}

/// Returns the end that SSL_read() has found, and keeps the error of a failure.
RecordLayer::Opened SslEngine::end_of(int result) {
  if (SSL_get_error(ssl_.get(), result) == SSL_ERROR_ZERO_RETURN) return Opened::closed;
  const unsigned long code = ERR_peek_error();
  if (out_of_memory_) {
    error_ = std::make_error_code(std::errc::not_enough_memory);
  } else if (is_alert(code)) {
    error_ = Error::peer_alert;
  } else {
    error_ = Error::bad_record;
  }
  return Opened::failed;
}

bool SslEngine::has_input() const noexcept {
  return SSL_pending(ssl_.get()) > 0 ||
         (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0 || error_;
}

std::error_code SslEngine::seal(Bytes plain, Buffer& output) {
  assert(!plain.empty() && plain.size() <= plain_max);
  const Use use(*this, nullptr, &output);
  if (error_) return error_;
  answers_ = 0;
  std::size_t count = 0;
  const int result = SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &count);
  if (result == 1 && count == plain.size()) return {};
  error_ = out_of_memory_ ? std::make_error_code(std::errc::not_enough_memory)
                          : make_error_code(Error::library_failure);
  return error_;
}

void SslEngine::seal_close(Buffer& output) {
  if (error_ || (SSL_get_shutdown(ssl_.get()) & SSL_SENT_SHUTDOWN) != 0) return;
  const Use use(*this, nullptr, &output);
  SSL_shutdown(ssl_.get());
}

void SslEngine::seal_key_update(Buffer& output) {
  const Use use(*this, nullptr, &output);
  SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED);
  SSL_do_handshake(ssl_.get());
}

void SslEngine::seal_renegotiation(Buffer& output) {
  const Use use(*this, nullptr, &output);
  SSL_clear_options(ssl_.get(), SSL_OP_NO_RENEGOTIATION);
  SSL_set_msg_callback(ssl_.get(), nullptr);  // count_record() takes the handshake for an attack
  SSL_renegotiate(ssl_.get());
  SSL_do_handshake(ssl_.get());
}

}  // namespace weir::tls::detail
