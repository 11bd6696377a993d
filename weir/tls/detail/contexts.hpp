// The settings of OpenSSL for a server and a client, made from the options.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/tls/certificate/detail/openssl.hpp"
#include "weir/tls/certificate/error.hpp"
#include "weir/tls/options.hpp"
#include "weir/tls/ticket_keys.hpp"

namespace weir::tls::detail {

/// The SHA-256 of the contents of files.
using FilesDigest = std::array<std::uint8_t, 32>;

using TrustReplaced = std::shared_ptr<std::atomic<bool>>;

/// Everything that a server uses at one time. It does not change. All cores share the store, which
/// is large and counts its users atomically; each core makes the other objects of OpenSSL on its
/// own.
struct ServerSnapshot {
  std::vector<Identity> identities;
  std::string trust;  ///< the trusted certificates in PEM
  /// True when a later snapshot has other trusted certificates. Snapshots with the same ones share
  /// it, and so do the connections whose peers they have verified.
  TrustReplaced trust_replaced = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<x509_store_st> store;
  std::optional<TicketKeys> ticket_keys;  ///< those of ServerOptions::ticket_key_file
  FilesDigest digest{};                   ///< of the files that all this comes from
  std::uint64_t generation = 0;
};

/// Everything that a client uses at one time.
struct ClientSnapshot {
  std::string trust;
  TrustReplaced trust_replaced = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<x509_store_st> store;
};

/// Makes `fresh` the newest snapshot after `last`, which may be nullptr: both share trust_replaced
/// if they trust the same certificates, and else it becomes true for `last`.
template <class Snapshot>
void replace_trust(const Snapshot* last, Snapshot& fresh) noexcept {
  if (last == nullptr) return;
  if (last->trust == fresh.trust) {
    fresh.trust_replaced = last->trust_replaced;
  } else {
    last->trust_replaced->store(true, std::memory_order_relaxed);
  }
}

/// The objects of OpenSSL for the identities of a server on one core.
/// Threads: one core's, and threads of a pool that continue handshakes of this core.
/// Lifetime: `options` outlive it.
class ServerContexts {
 public:
  /// Checks the options and makes the objects. It parses all certificates, so a loop calls it in a
  /// pool.
  /// Errors: those of Server::load() except for files and dates.
  static Outcome<std::unique_ptr<ServerContexts>> make(
      const ServerOptions& options, std::shared_ptr<const ServerSnapshot> snapshot);
  ServerContexts(const ServerContexts&) = delete;
  ServerContexts& operator=(const ServerContexts&) = delete;

  /// Returns the context of the first identity, with which a handshake begins.
  ssl_ctx_st& first() const noexcept { return *contexts_.front(); }
  /// Returns the context of the identity for a name in the form of dns::normal_host(), or nullptr.
  ssl_ctx_st* find(std::string_view name) const;
  const ServerOptions& options() const noexcept { return options_; }
  const ServerSnapshot& snapshot() const noexcept { return *snapshot_; }
  /// The keys of the next ticket, in either direction; not nullptr during a handshake.
  void set_ticket_keys(std::shared_ptr<const TicketKeys> keys) noexcept {
    const std::lock_guard lock(mutex_);
    ticket_keys_ = std::move(keys);
  }
  std::shared_ptr<const TicketKeys> ticket_keys() const noexcept {
    const std::lock_guard lock(mutex_);
    return ticket_keys_;
  }

 private:
  ServerContexts(const ServerOptions& options, std::shared_ptr<const ServerSnapshot> snapshot)
      : options_(options), snapshot_(std::move(snapshot)) {}
  Outcome<SslContextPtr> make_context(const Identity& identity);

  const ServerOptions& options_;
  std::shared_ptr<const ServerSnapshot> snapshot_;
  mutable std::mutex mutex_;  // guards ticket_keys_
  std::shared_ptr<const TicketKeys> ticket_keys_;
  std::vector<SslContextPtr> contexts_;  // of the identities, in their order
  std::unordered_map<std::string, std::size_t> by_name_;
};

/// Makes the object of OpenSSL for a client on one core.
/// Errors: Error::invalid_options, library_failure.
Outcome<SslContextPtr> make_client_context(const ClientOptions& options,
                                           const ClientSnapshot& snapshot);

/// Returns an error if the certificate of an identity is not valid now.
/// Errors: Error::certificate_expired, certificate_not_yet_valid.
Outcome<> check_dates(const Identity& identity, WallTime now);

}  // namespace weir::tls::detail
