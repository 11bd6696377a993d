#include "weir/tls/client.hpp"

#include <functional>
#include <utility>

#include "weir/task/sync/semaphore.hpp"
#include "weir/tls/certificate/detail/certificate.hpp"
#include "weir/tls/detail/contexts.hpp"
#include "weir/tls/detail/handshakes.hpp"
#include "weir/tls/detail/session_cache.hpp"
#include "weir/tls/detail/ssl_engine.hpp"
#include "weir/tls/detail/tls_files.hpp"

namespace weir::tls {

using detail::ClientSnapshot;
using detail::SslEngine;

namespace detail {
namespace {

/// Makes the store of a snapshot from its texts, and proves that each core can make a context.
Outcome<> complete(const ClientOptions& options, ClientSnapshot& snapshot) {
  WEIR_TRY(StorePtr store, make_store(snapshot.trust));
  snapshot.store = std::shared_ptr<x509_store_st>(std::move(store));
  WEIR_TRY(make_client_context(options, snapshot));
  return {};
}

}  // namespace
}  // namespace detail

Client::Client(ClientOptions options) : options_(std::move(options)) {}
Client::~Client() = default;

std::shared_ptr<const ClientSnapshot> Client::snapshot() const {
  const std::lock_guard lock(mutex_);
  return snapshot_;
}

Task<Outcome<>> Client::load() {
  WEIR_CO_TRY(auto fresh, co_await read());
  const std::lock_guard lock(mutex_);
  detail::replace_trust(snapshot_.get(), *fresh);
  snapshot_ = std::move(fresh);
  co_return {};
}

Task<Outcome<>> Client::load_once() {
  WEIR_CO_TRY(auto fresh, co_await read());
  const std::lock_guard lock(mutex_);
  if (snapshot_ == nullptr) snapshot_ = std::move(fresh);  // or another core was first
  co_return {};
}

/// Reads the trusted CAs. The pool parses them, which takes 27 ms for those of a Debian system.
Task<Outcome<std::shared_ptr<ClientSnapshot>>> Client::read() const {
  auto fresh = std::make_shared<ClientSnapshot>();
  if (options_.verification != Verification::none) {
    WEIR_CO_TRY(fresh->trust, co_await detail::read_trust(options_.trust));
  }
  Outcome<> made;
  std::function<void()> work = [&] { made = detail::complete(options_, *fresh); };
  const Result<> ran = co_await detail::run_in_pool(std::move(work));
  if (!ran) co_return std::unexpected(Failure(ran.error()));
  if (!made) co_return std::unexpected(std::move(made.error()));
  co_return fresh;
}

class detail::ConnectorState {
 public:
  ConnectorState(Loop& loop, Client& client, std::vector<std::string> protocols)
      : loop_(loop),
        client_(client),
        protocols_(std::move(protocols)),
        handshakes_(loop, client.options().limits) {}

  Task<Outcome<Stream>> connect(AnyStream inner, std::string host) {
    if (client_.snapshot() == nullptr) {
      WEIR_CO_TRY(co_await load_once());
    }
    WEIR_CO_TRY(refresh());
    WEIR_CO_TRY(auto engine, SslEngine::make(*context_, SslEngine::Side::client));
    engine->set_clock(loop_.platform());
    const bool checked = client_.options().verification == Verification::full;
    WEIR_CO_TRY(engine->set_host(host, checked, sessions_));
    detail::ProofLimits proof{client_.options().session_lifetime, used_->trust_replaced};
    co_return co_await handshakes_.run(std::move(engine), std::move(inner), std::move(proof));
  }

 private:
  /// Loads the client unless another call of this core does so meanwhile. The CAs of the system
  /// take milliseconds to parse.
  Task<Outcome<>> load_once() {
    WEIR_CO_TRY(const SemaphorePermit turn, co_await loading_.acquire());
    if (client_.snapshot() == nullptr) {
      WEIR_CO_TRY(co_await client_.load_once());
    }
    co_return {};
  }
  /// Makes the context of the newest snapshot. The tickets of other trusted CAs are dropped.
  Outcome<> refresh() {
    std::shared_ptr<const ClientSnapshot> newest = client_.snapshot();
    if (newest == used_) return {};
    ClientOptions options = client_.options();
    options.protocols = protocols_;
    WEIR_TRY(context_, make_client_context(options, *newest));
    // Older streams may still receive tickets of servers whose certificates the new CAs have not
    // issued.
    if (options.tickets) sessions_ = std::make_shared<SessionCache>(options.session_lifetime);
    used_ = std::move(newest);
    return {};
  }

  Loop& loop_;
  Client& client_;
  std::vector<std::string> protocols_;
  Handshakes handshakes_;
  Semaphore loading_{1};
  std::shared_ptr<const ClientSnapshot> used_;
  SslContextPtr context_;
  std::shared_ptr<SessionCache> sessions_;  // shared with the streams, which receive tickets
};

Connector::Connector(Loop& loop, Client& client)
    : Connector(loop, client, client.options().protocols) {}
Connector::Connector(Loop& loop, Client& client, std::vector<std::string> protocols)
    : state_(std::make_unique<detail::ConnectorState>(loop, client, std::move(protocols))) {}
Connector::~Connector() = default;

Task<Outcome<Stream>> Connector::connect(AnyStream inner, std::string host) {
  return state_->connect(std::move(inner), std::move(host));
}

}  // namespace weir::tls
