// The client's side of TLS: a Client for the process, and a Connector for each core.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "weir/net/any_stream.hpp"
#include "weir/task/task.hpp"
#include "weir/tls/certificate/error.hpp"
#include "weir/tls/options.hpp"
#include "weir/tls/stream.hpp"

namespace weir::tls {

namespace detail {
class ConnectorState;
struct ClientSnapshot;
}  // namespace detail

/// The trusted CAs and the identity of a client, for all cores. The default options verify
/// servers against the CAs that the operating system trusts.
/// Threads: any.
/// Lifetime: outlives its connectors.
class Client {
 public:
  explicit Client(ClientOptions options = {});
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  const ClientOptions& options() const noexcept { return options_; }
  /// Reads and checks the trusted CAs, and uses them from then on. A Connector calls it if the
  /// program has not; call it to fail early, or after a change of the files. Other trusted CAs end
  /// the proof of the servers on open connections (TlsInfo::proof_ended()), and their tickets.
  /// Errors: Error::unreadable_file, invalid_certificate, invalid_options, library_failure;
  /// Errc::cancelled.
  /// Cancel: changes nothing.
  Task<Outcome<>> load();

 private:
  friend detail::ConnectorState;
  std::shared_ptr<const detail::ClientSnapshot> snapshot() const;
  Task<Outcome<std::shared_ptr<detail::ClientSnapshot>>> read() const;
  Task<Outcome<>> load_once();

  const ClientOptions options_;
  mutable std::mutex mutex_;  // guards the snapshot
  std::shared_ptr<const detail::ClientSnapshot> snapshot_;
};

/// Performs the handshakes with servers on one core, and keeps their session tickets.
/// Threads: one core's.
/// Lifetime: outlives its calls, but not its streams.
class Connector {
 public:
  /// Errors: throws std::bad_alloc.
  Connector(Loop& loop, Client& client);
  /// Makes a connector that offers `protocols` instead of ClientOptions::protocols.
  /// Errors: throws std::bad_alloc.
  Connector(Loop& loop, Client& client, std::vector<std::string> protocols);
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;
  ~Connector();

  /// Performs the handshake over a connected stream. `host` is the DNS name or the IP address that
  /// the user asked for, in any letter case. A dot at the end of a name and the zone of an address
  /// do not count, and an IPv4-mapped address is the IPv4 address. A DNS name is sent to the
  /// server. The certificate must be for `host`, unless ClientOptions::verification says otherwise.
  /// Failure::text() says why a server was rejected: "wrong_name: api.example.org is not among
  /// www.example.org, *.cdn.example.org". Returns: the stream, whose tls() describes the
  /// connection. Errors: those of Client::load(); Error::invalid_options for an empty or malformed
  /// `host`; the errors of handshakes and certificates in Error; Errc::cancelled. Cancel: closes
  /// the stream.
  Task<Outcome<Stream>> connect(AnyStream inner, std::string host);

 private:
  std::unique_ptr<detail::ConnectorState> state_;
};

}  // namespace weir::tls
