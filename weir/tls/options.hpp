// The options of TLS servers and clients, with their defaults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/net/tls_info.hpp"
#include "weir/task/sync/rate_limiter.hpp"
#include "weir/tls/certificate/identity.hpp"
#include "weir/tls/ticket_keys.hpp"

namespace weir::tls {

/// The limits of handshakes on one core. Each comment ends with the error beyond the limit. A
/// client whose first message is not complete counts only for the timeouts and input_bytes_max.
struct HandshakeLimits {
  /// Time from the start of the handshake to its end, with all waits; timed_out. The handshake of a
  /// server starts with accept().
  Duration timeout = std::chrono::seconds(10);
  /// Handshakes in progress on a core, at least 1; others wait. When others wait, a server ends a
  /// handshake whose client has been silent for half a second; too_many_handshakes.
  std::size_t concurrency_max = 256;
  std::size_t waiting_max = 1024;      ///< handshakes that wait on a core; too_many_handshakes
  std::optional<RateLimit> rate = {};  ///< rate of begins; others wait; nullopt: no limit
  /// Bytes of the first message, and of the messages before the handshake is complete;
  /// input_too_large. Two more records may come, which the peer fills with padding or with early
  /// data. A server skips early data (RFC 8446, 4.2.10).
  std::size_t input_bytes_max = 16 * 1024;
};

/// The files of an identity in PEM. Server::load() reads them again on each call.
struct IdentityFiles {
  std::string chain;  ///< path of the chain, the certificate of this side first
  std::string key;    ///< path of the unencrypted private key
};

/// Trust names the certificate authorities (CAs) whose certificates a side accepts. A side accepts
/// the CAs of all members together.
struct Trust {
  bool system = false;             ///< true: the CAs that the operating system trusts
  std::vector<std::string> files;  ///< paths of files with certificates in PEM
  std::string pem;                 ///< certificates in PEM
};

/// The certificates that a server wants from its clients.
enum class ClientCertificates : std::uint8_t {
  none,       ///< the server asks for none
  requested,  ///< a client may send one; the server rejects one that it does not trust
  required,   ///< a client without a certificate is rejected; certificate_missing
};

/// The answer of a server to a client that asks (by SNI, RFC 6066) for a name of none of its
/// identities.
enum class UnknownName : std::uint8_t {
  first_identity,  ///< the first identity; the client decides
  rejected,        ///< alert unrecognized_name; unknown_server_name
};

/// FileWatch sets when changed files are loaded.
struct FileWatch {
  Duration poll_interval = std::chrono::seconds(2);  ///< time between two looks at the files
  /// Time for which the files must stay unchanged before they are loaded. The server waits for it
  /// at most ten times in a row.
  Duration debounce_time = std::chrono::milliseconds(100);
};

/// The code that opens and seals the records of a server's connections after their handshakes.
enum class RecordCode : std::uint8_t {
  weir,     ///< Weir's own, which is faster; OpenSSL's for suites that Weir does not know
  openssl,  ///< OpenSSL's, for all connections
};

/// ServerOptions sets up a Server. Renegotiation, compression, early data (0-RTT) and cipher suites
/// without authenticated encryption are always off.
struct ServerOptions {
  /// Identities that the program has made. The first identity of both lists together, this one
  /// first, serves clients that ask for no name by SNI. A client that asks for a name gets the
  /// first identity with this exact name, else the first one with a wildcard for its first label.
  std::vector<Identity> identities = {};
  std::vector<IdentityFiles> files = {};
  /// A certificate made by Server::load() if both lists are empty; see Identity::self_signed(). Its
  /// `not_before` is set to the time of the platform.
  std::optional<SelfSigned> self_signed = {};
  UnknownName unknown_name = UnknownName::first_identity;
  /// Protocols of ALPN, the preferred one first. A client that offers none of them is rejected. A
  /// client without ALPN is served. Empty: the server ignores ALPN. The default is that of
  /// an HTTP server; servers of other protocols set theirs.
  std::vector<std::string> protocols = {"h2", "http/1.1"};
  TlsVersion version_min = TlsVersion::tls_1_2;
  ClientCertificates client_certificates = ClientCertificates::none;
  Trust client_trust = {};  ///< CAs of client certificates; empty exactly if none are wanted
  bool tickets = true;      ///< true to resume sessions; see TicketKeys
  /// Time after a full handshake for which tickets resume its session; more than 0, at most 8 h. A
  /// resumed session gets a new ticket, which ends at the same time. A session thus never outlives
  /// the proof of a client certificate by more than this, and never the dates of its chain. An open
  /// connection whose client has proved a certificate obeys the same; see TlsInfo::proof_ended(). A
  /// ticket resumes only with the server name (SNI) for which it was issued (RFC 6066 §3); a client
  /// with another name gets a full handshake.
  Duration session_lifetime = std::chrono::hours(8);
  /// Path of a file with one to three ticket keys; see TicketKeys::from_bytes(). Servers of a fleet
  /// share it, and the operator rotates the keys. Empty: the server makes and rotates its keys.
  std::string ticket_key_file = {};
  /// Both give the same data, alerts and errors. A process whose OpenSSL demands FIPS by its
  /// default properties (config(5), fips_module(7)) always has `openssl`, if it does so before its
  /// first use of Weir's TLS.
  RecordCode records = RecordCode::weir;
  /// http::serve(), apps, Acceptor::make() and Server::watch() load the files again when one has
  /// changed; nullopt: only Server::load() does.
  std::optional<FileWatch> watch = {};
  /// Time from the begin of accept() to the end of the client's first message; timed_out.
  Duration hello_timeout = std::chrono::seconds(5);
  HandshakeLimits limits = {};
};

/// The check of a server's certificate.
enum class Verification : std::uint8_t {
  full,      ///< CAs, dates, purpose, and the name of the server
  any_name,  ///< all but the name
  none,      ///< nothing: an attacker in between can read and change everything
};

/// ClientOptions sets up a Client.
struct ClientOptions {
  Trust trust = {.system = true, .files = {}, .pem = {}};
  Verification verification = Verification::full;
  std::optional<Identity> identity = {};  ///< shown to servers that ask for a certificate
  /// Protocols of ALPN, the preferred one first. A server that chooses none is accepted. Empty: the
  /// client offers none.
  std::vector<std::string> protocols = {"http/1.1"};
  TlsVersion version_min = TlsVersion::tls_1_2;
  TlsVersion version_max = TlsVersion::tls_1_3;
  bool tickets = true;  ///< true to resume sessions
  /// Time after a full handshake for which the client resumes its session; more than 0, at most 7
  /// days (RFC 8446 §4.6.1). After it, and when a certificate of the server's chain has expired,
  /// the client verifies the server again. An http::Client then uses an open connection for no new
  /// request; see TlsInfo::proof_ended().
  Duration session_lifetime = std::chrono::hours(8);
  HandshakeLimits limits = {};
};

// The memory that clients can make a server hold, as its options imply.

/// Upper bounds, in bytes, of the memory that the clients of a server hold in Weir and OpenSSL.
/// They exclude the inner stream, coroutine frames, and the data that a program reads and writes;
/// see http::memory_bound() for those of an HTTP server.
struct ServerMemoryBound {
  std::uint64_t idle_connection;  ///< a connection without input, output or operation
  std::uint64_t connection;       ///< a connection at its worst moment
  std::uint64_t first_message;  ///< a client before its handshake, with the bytes that it has sent
  std::uint64_t handshake;      ///< a handshake in progress, in addition to `first_message`
  std::uint64_t core;           ///< one core, without its clients
  /// What an idle connection holds in addition while its client has sent a part of a record.
  std::uint64_t incomplete_record = 0;
};

/// Returns the bounds of a server with these options. A client certificate with very many names
/// holds many times its size, so the bounds are large if the server asks for certificates. At most
/// HandshakeLimits::concurrency_max handshakes are in progress on a core.
ServerMemoryBound memory_bound(const ServerOptions& options) noexcept;

/// Returns an upper bound, in bytes, of the session tickets that a Connector keeps: those of at
/// most 1024 servers. It is 0 without ClientOptions::tickets.
std::uint64_t kept_sessions_bytes_max(const ClientOptions& options) noexcept;

}  // namespace weir::tls
