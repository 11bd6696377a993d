// SslEngine: one connection of OpenSSL over two buffers, without a socket.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "weir/base/buffer.hpp"
#include "weir/base/time.hpp"
#include "weir/net/tls_info.hpp"
#include "weir/tls/certificate/detail/openssl.hpp"
#include "weir/tls/certificate/error.hpp"
#include "weir/tls/detail/records/handshake_keys.hpp"
#include "weir/tls/detail/records/record_layer.hpp"
#include "weir/tls/detail/session_proof.hpp"

struct x509_store_ctx_st;

namespace weir::loop {
class Platform;
}

namespace weir::tls::detail {

class SessionCache;

/// Performs the handshake, and is the record layer of OpenSSL afterwards. OpenSSL reads and writes
/// through a BIO of Weir, which takes bytes from the input and appends bytes to the output of the
/// present call. Input behind the last complete record stays in OpenSSL's own buffer.
/// Threads: one core's.
class SslEngine final : public RecordLayer {
 public:
  enum class Side : std::uint8_t { server, client };
  /// The result of a step of the handshake.
  enum class Step : std::uint8_t {
    finished,
    needs_input,
    failed,
    signs,  ///< the next step signs with a key that computes for long; see sign()
  };

  /// Makes a connection with the settings of `context`, which it keeps alive.
  /// Errors: Error::library_failure.
  static Outcome<std::unique_ptr<SslEngine>> make(ssl_ctx_st& context, Side side);
  ~SslEngine() override;

  // Before the handshake.

  /// Takes the time of `clock` for set_time(), and limits the KeyUpdates of the peer by it.
  /// Lifetime: `clock` outlives the engine.
  void set_clock(loop::Platform& clock);
  /// Verifies the dates of certificates at this time.
  void set_time(WallTime now);
  /// Returns this time in seconds since 1970.
  long seconds() const noexcept;
  /// Offers no version above this one, as an old peer would.
  void set_version_max(TlsVersion version);
  /// Sends the host in its normal form as the server name if it is a DNS name. A server name has no
  /// dot at its end (RFC 6066 §3), nor has a name in a certificate. Requires a certificate for the
  /// host if `checked` is true. Uses and keeps the tickets of `cache`; nullptr: none.
  /// Errors: Error::invalid_options, library_failure.
  Outcome<> set_host(std::string_view name, bool checked, std::shared_ptr<SessionCache> cache);

  // The handshake.

  /// Uses the input and appends to the output what the peer is to receive, also after a failure.
  Step handshake(Buffer& input, Buffer& output);
  /// Continues after Step::signs, as handshake() does. It computes for milliseconds.
  /// Threads: any, while no other thread uses the engine.
  Step sign(Buffer& input, Buffer& output);
  /// Returns true if the present step may compute for long.
  bool may_sign() const noexcept { return may_sign_; }
  /// Returns true if the next step may use a public or a private key, which takes long. The last
  /// step of a server that verifies no certificate uses none.
  bool may_compute() const noexcept;
  /// Returns true if the last step, for which may_compute() was true, may have used such a key. The
  /// first step of a server that resumes a session of TLS 1.2 uses none.
  bool computed() const noexcept;
  Side side() const noexcept { return side_; }
  /// Returns true if the peer needs no output of the last step before it sends data.
  bool may_hold_output() const noexcept;
  /// Returns why the handshake has failed.
  Failure take_failure();
  /// Returns the facts of the finished handshake, without the end of the proof.
  TlsInfo info() const;
  /// Returns true if this handshake, or the one whose session it resumes, has verified a
  /// certificate of the peer.
  bool has_verified_peer() const noexcept;
  /// The callbacks of the context set the reason of a failure that they cause.
  void reject(Failure failure) { rejection_.emplace(std::move(failure)); }
  /// Returns true if the proof of `session` still holds for a session of at most `lifetime`.
  bool is_current(const ssl_session_st& session, Duration lifetime) const noexcept;
  /// Returns the proof of this handshake. That of a resumed session is the proof of the session.
  SessionProof proof() const;
  /// Keeps the name that the client asks for in its first message; empty: none.
  void set_asked_name(std::string_view name);
  /// Returns true if `session` was made for the name that the client asks for now.
  bool has_asked_name(const ssl_session_st& session) const;
  /// Keeps a session that the peer's ticket describes.
  /// Returns: true if the engine has taken this reference to `session`.
  bool keep_session(ssl_session_st* session);
  /// Returns the keys with which another layer continues after the handshake of a server.
  /// Returns: nullopt if the engine must stay the layer: a client, which receives tickets; see
  /// HandshakeKeys::keys_of() for a server.
  std::optional<ConnectionKeys> keys() const;
  /// Returns the engine of a connection; the callbacks of OpenSSL use it.
  static SslEngine& of(const ssl_st& ssl) noexcept;

  // The records.

  Opened open(Buffer& input, Buffer& plain, Buffer& output) override;
  bool has_input() const noexcept override;
  std::error_code seal(Bytes plain, Buffer& output) override;
  void seal_close(Buffer& output) override;
  std::error_code error() const noexcept override { return error_; }

  // The messages of a hostile peer, which `weir check` sends after the handshake.

  /// Appends a KeyUpdate that asks for another one (RFC 8446, 4.6.3).
  void seal_key_update(Buffer& output);
  /// Appends the first message of a renegotiation in TLS 1.2. handshake() continues it.
  void seal_renegotiation(Buffer& output);

 private:
  class Use;
  friend struct EngineBio;
  SslEngine(SslPtr ssl, Side side) noexcept : ssl_(std::move(ssl)), side_(side) {}
  /// Largest number of records that open() appends between two calls of seal(). They wait in the
  /// output, whose size a peer would otherwise decide.
  static constexpr unsigned answers_max = 128;

  static int on_verified(int accepted, x509_store_ctx_st* verification);
  static void count_record(int sent, int version, int type, const void* bytes, std::size_t size,
                           ssl_st* ssl, void* argument);
  static void count_handshake_record(int sent, int version, int type, const void* bytes,
                                     std::size_t size, ssl_st* ssl, void* argument);
  void count_key_update();
  void keep_resumed_session();
  Step fail_handshake(Failure failure);
  Failure failure_of_handshake() const;
  Opened end_of(int result);

  SslPtr ssl_;
  Side side_;
  bool may_sign_ = false;
  bool finished_sent_ = false;  // the Finished of this side
  bool out_of_memory_ = false;  // an append to the output has failed
  unsigned empty_records_ = 0;  // records received since the last data
  unsigned answers_ = 0;        // records that open() has appended since the last seal()
  unsigned key_updates_ = 0;    // those of the peer since minute_
  Instant minute_{};
  loop::Platform* clock_ = nullptr;
  WallTime time_{};            // of the handshake
  Buffer* input_ = nullptr;    // of the present call
  Buffer* output_ = nullptr;   // of the present call
  std::error_code violation_;  // why the peer's records end; count_record() sets it
  std::error_code error_;
  std::string host_;        // that of a client
  std::string asked_name_;  // that of the client of a server
  std::shared_ptr<SessionCache> sessions_;
  std::optional<Failure> rejection_;  // why this side rejects the peer
  HandshakeKeys keys_;                // those of a server
};

}  // namespace weir::tls::detail
