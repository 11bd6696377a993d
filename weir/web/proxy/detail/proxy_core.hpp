// The part of a reverse proxy that belongs to one core: its client and its upstreams.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "weir/base/detail/counter.hpp"
#include "weir/http/client/client.hpp"
#include "weir/http/client/detail/client_pool.hpp"
#include "weir/loop/loop.hpp"
#include "weir/loop/metrics.hpp"
#include "weir/web/proxy/detail/upstreams.hpp"

namespace weir::http {

/// The client and the upstreams of one reverse proxy on one core. The client keeps idle connections
/// to the upstreams. It is destroyed when the loop drains, with the last request.
/// Threads: its loop's.
class ProxyCore final : DrainObserver, MetricSource {
 public:
  ProxyCore(Loop& loop, std::size_t upstreams, const ReverseProxyOptions& options);
  ~ProxyCore() { detach(); }

  /// A request in progress. The client lives as long as it.
  class Request {
   public:
    explicit Request(ProxyCore& core);
    Request(Request&& other) noexcept
        : core_(std::exchange(other.core_, nullptr)),
          upstream_(other.upstream_),
          tried_(std::move(other.tried_)) {}
    ~Request() {
      if (core_ != nullptr) core_->end(*this);
    }

    Client& client() const noexcept { return *core_->client_; }
    /// Returns the pool that opens the connections of WebSockets, which it does not count.
    ClientPool& websocket_pool() const noexcept { return *core_->websocket_pool_; }
    /// Chooses an upstream that the request has not tried, and returns its index.
    std::optional<std::size_t> choose();
    void record_success() noexcept { core_->upstreams_.record_success(*upstream_); }
    void record_failure();

   private:
    friend ProxyCore;
    ProxyCore* core_;
    std::optional<std::size_t> upstream_;
    std::vector<std::size_t> tried_;  // earlier ones
  };

 private:
  static void on_drain(DrainObserver& self);
  void collect(MetricSnapshot& sum) const override;
  void end(Request& request) noexcept;
  void release_client() noexcept;

  Loop& loop_;
  ClientOptions client_options_;
  Upstreams upstreams_;
  std::optional<Client> client_;
  std::optional<ClientPool> websocket_pool_;  // while there is a client
  std::size_t requests_ = 0;                  // in progress
  weir::detail::Counter total_;
  weir::detail::Counter failures_;
  weir::detail::Counter ejections_;
};

/// The reverse proxies that a core has used. The loop owns it.
/// Threads: its loop's.
class ProxyCores {
 public:
  /// Returns the part of the proxy with the state `owner` for `loop`. It lives as long as the state
  /// does, or longer.
  ProxyCore& of(Loop& loop, const std::shared_ptr<const void>& owner, std::size_t upstreams,
                const ReverseProxyOptions& options);

 private:
  struct Entry {
    const void* key;
    std::weak_ptr<const void> owner;
    std::unique_ptr<ProxyCore> core;
  };
  std::vector<Entry> entries_;
};

}  // namespace weir::http
