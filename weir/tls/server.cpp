#include "weir/tls/server.hpp"

#include <openssl/crypto.h>

#include <utility>

#include "weir/task/context.hpp"
#include "weir/tls/certificate/detail/certificate.hpp"
#include "weir/tls/detail/contexts.hpp"
#include "weir/tls/detail/handshakes.hpp"
#include "weir/tls/detail/pem_files.hpp"
#include "weir/tls/detail/ssl_engine.hpp"

namespace weir::tls {

using detail::ServerContexts;
using detail::ServerSnapshot;
using detail::SslEngine;

Server::Server(ServerOptions options) : options_(std::move(options)) {}
Server::~Server() = default;

std::shared_ptr<const ServerSnapshot> Server::snapshot() const {
  const std::lock_guard lock(mutex_);
  return snapshot_;
}

/// Publishes `fresh` with these ticket keys, or with those that are in use. The caller has locked
/// the mutex. Each call has a generation of its own.
void Server::publish(std::shared_ptr<ServerSnapshot> fresh, const TicketKeys* keys) {
  if (keys != nullptr) {
    fresh->ticket_keys = *keys;
  } else if (snapshot_ != nullptr) {
    fresh->ticket_keys = snapshot_->ticket_keys;
  }
  fresh->generation = snapshot_ == nullptr ? 1 : snapshot_->generation + 1;
  snapshot_ = std::move(fresh);
  // release pairs with generation().
  generation_.store(snapshot_->generation, std::memory_order_release);
}

namespace {

/// Erases a text when it is destroyed.
class Eraser {
 public:
  explicit Eraser(std::string& text) noexcept : text_(text) {}
  Eraser(const Eraser&) = delete;
  Eraser& operator=(const Eraser&) = delete;
  ~Eraser() { OPENSSL_cleanse(text_.data(), text_.size()); }

 private:
  std::string& text_;
};

/// Reads the identities of the options.
Task<Outcome<std::vector<Identity>>> read_identities(const ServerOptions& options, WallTime now) {
  std::vector<Identity> all = options.identities;
  for (const IdentityFiles& each : options.files) {
    WEIR_CO_TRY(const std::string chain, co_await detail::read_pem(each.chain));
    WEIR_CO_TRY(std::string key, co_await detail::read_pem(each.key));
    const Eraser eraser(key);
    auto identity = Identity::from_pem(chain, key);
    if (!identity) co_return std::unexpected(identity.error().at(each.chain + ", " + each.key));
    all.push_back(std::move(*identity));
  }
  if (all.empty() && options.self_signed) {
    SelfSigned certificate = *options.self_signed;
    certificate.not_before = now;
    WEIR_CO_TRY(Identity identity, Identity::self_signed(certificate));
    all.push_back(std::move(identity));
  }
  co_return all;
}

}  // namespace

Task<Outcome<std::shared_ptr<ServerSnapshot>>> Server::read() const {
  const Context context = co_await this_context();
  const WallTime now = context.loop->platform().wall_time();
  auto fresh = std::make_shared<ServerSnapshot>();
  WEIR_CO_TRY(fresh->identities, co_await read_identities(options_, now));
  for (const Identity& each : fresh->identities) {
    WEIR_CO_TRY(detail::check_dates(each, now));
  }
  WEIR_CO_TRY(fresh->trust, co_await detail::read_trust(options_.client_trust));
  WEIR_CO_TRY(detail::StorePtr store, detail::make_store(fresh->trust));
  fresh->store = std::shared_ptr<x509_store_st>(std::move(store));
  if (options_.ticket_keys) {
    fresh->ticket_keys = *options_.ticket_keys;
  } else {
    WEIR_CO_TRY(fresh->ticket_keys, TicketKeys::random());
  }
  // Every core makes contexts of its own later; this proves that it can.
  WEIR_CO_TRY(ServerContexts::make(options_, fresh));
  co_return fresh;
}

Task<Outcome<>> Server::load() {
  const std::uint64_t number = loads_begun_.fetch_add(1, std::memory_order_relaxed) + 1;
  WEIR_CO_TRY(std::shared_ptr<ServerSnapshot> fresh, co_await read());
  const std::lock_guard lock(mutex_);
  // A load that began later has read the files later, and may have been faster.
  if (number < newest_load_) co_return {};
  newest_load_ = number;
  publish(std::move(fresh));
  co_return {};
}

Task<Outcome<>> Server::load_once() {
  if (loaded()) co_return {};
  const Context context = co_await this_context();
  Outcome<std::shared_ptr<ServerSnapshot>> fresh = co_await read();
  const std::lock_guard lock(mutex_);
  if (snapshot_ != nullptr) co_return {};  // another core was first
  if (!fresh) {
    const bool logs =
        fresh.error().code() != Errc::cancelled && !std::exchange(failure_logged_, true);
    if (logs) context.loop->platform().log("weir: tls: " + fresh.error().text());
    co_return std::unexpected(fresh.error());
  }
  publish(std::move(*fresh));
  co_return {};
}

Outcome<> Server::set_ticket_keys(TicketKeys keys) {
  const std::lock_guard lock(mutex_);
  if (snapshot_ == nullptr) {
    return std::unexpected(Failure(Error::invalid_options, "load() comes first"));
  }
  publish(std::make_shared<ServerSnapshot>(*snapshot_), &keys);
  return {};
}

class detail::AcceptorState {
 public:
  AcceptorState(Loop& loop, const Server& server)
      : loop_(loop), server_(server), handshakes_(loop, server.options().limits) {}

  Task<Outcome<Stream>> accept(AnyStream inner) {
    auto contexts = current_contexts();
    if (!contexts) co_return std::unexpected(std::move(contexts.error()));
    // The callbacks of the handshake use the contexts, which a change may replace meanwhile.
    const std::shared_ptr<ServerContexts> used = std::move(*contexts);
    auto engine = SslEngine::make(used->first(), SslEngine::Side::server);
    if (!engine) co_return std::unexpected(std::move(engine.error()));
    (*engine)->set_clock(loop_.platform());
    co_return co_await handshakes_.run(std::move(*engine), std::move(inner));
  }

 private:
  Outcome<std::shared_ptr<ServerContexts>> current_contexts() {
    if (server_.generation() != generation_) {
      std::shared_ptr<const ServerSnapshot> snapshot = server_.snapshot();
      const std::uint64_t generation = snapshot->generation;
      auto made = ServerContexts::make(server_.options(), std::move(snapshot));
      if (!made) return std::unexpected(std::move(made.error()));
      contexts_ = std::move(*made);
      generation_ = generation;
    }
    if (contexts_ == nullptr) {
      return std::unexpected(Failure(Error::invalid_options, "the server is not loaded"));
    }
    return contexts_;
  }

  Loop& loop_;
  const Server& server_;
  Handshakes handshakes_;
  std::shared_ptr<ServerContexts> contexts_;
  std::uint64_t generation_ = 0;  // that of the contexts
};

Acceptor::Acceptor(Loop& loop, const Server& server)
    : state_(std::make_unique<detail::AcceptorState>(loop, server)) {}
Acceptor::~Acceptor() = default;

Task<Outcome<Stream>> Acceptor::accept(AnyStream inner) {
  return state_->accept(std::move(inner));
}

}  // namespace weir::tls
