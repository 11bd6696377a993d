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
#include "weir/task/task.hpp"
#include "weir/web/clients/detail/client_slots.hpp"
#include "weir/web/proxy/detail/upstream_plan.hpp"
#include "weir/web/proxy/detail/upstreams.hpp"

namespace weir::http {

/// Returns the number of requests that a connection of this client to an upstream carries at a
/// time.
std::size_t requests_per_connection(const ClientOptions& options) noexcept;

/// The client and the upstreams of one reverse proxy on one core. The client keeps idle connections
/// to the upstreams. It is destroyed when the loop drains, with the last request.
///
/// A request needs a slot, and a WebSocket one of its own kind. The clients of the proxy share
/// them; see ClientSlots. There are as many slots for requests as the connections to the upstreams
/// carry at a time. No request thus waits in a queue of the client, which knows no clients of the
/// proxy. The number follows the protocol and the settings of the upstreams, and their ejections.
/// Threads: its loop's.
class ProxyCore final : DrainObserver, MetricSource, ConnectionObserver, loop::Timer {
 public:
  using Slots = detail::ClientSlots;

  ProxyCore(Loop& loop, std::vector<Url> upstreams, const ReverseProxyOptions& options,
            std::shared_ptr<UpstreamPlan> plan);
  ~ProxyCore() { detach(); }

  /// A request in progress. The client lives as long as it.
  class Request {
   public:
    explicit Request(ProxyCore& core);
    Request(Request&& other) noexcept
        : core_(std::exchange(other.core_, nullptr)),
          upstream_(other.upstream_),
          tried_(std::move(other.tried_)),
          use_(other.use_),
          tunnel_(std::move(other.tunnel_)),
          slot_(std::move(other.slot_)) {}
    ~Request() {
      if (core_ == nullptr) return;
      slot_.release();
      core_->end(*this);
    }

    /// Takes a slot for a request without waiting. Returns false if there is none.
    bool try_take_slot(const http::Request& request);
    /// Waits for a slot for a request, for at most ClientLimits::queue_timeout.
    /// Errors: those of ClientSlots::acquire().
    /// Cancel: leaves the queue.
    Task<Result<>> take_slot(const http::Request& request);
    /// Waits for a slot for a WebSocket in the same way.
    /// Errors: those of take_slot().
    /// Cancel: leaves the queue.
    Task<Result<>> take_websocket_slot(const http::Request& request);
    Slots::Slot& slot() noexcept { return slot_; }

    Client& client() const noexcept { return *core_->client_; }
    /// Returns the pool that opens the connections of WebSockets, which it does not count.
    ClientPool& websocket_pool() const noexcept { return *core_->websocket_pool_; }
    /// Returns true if an upstream at this URL may speak HTTP/2.
    bool may_speak_http2(const Url& url) const noexcept {
      return core_->websocket_pool_->may_speak_http2(url);
    }
    /// Chooses an upstream that the request has not tried, and returns its index.
    std::optional<std::size_t> choose();
    /// Lets choose() return the last upstream again.
    void try_again() noexcept;
    /// Errors: throws std::bad_alloc.
    void record_success() {
      core_->upstreams_.record_success(*upstream_);
      core_->update_slots();
    }
    void record_failure();

   private:
    friend ProxyCore;
    Task<Result<>> wait_for(Slots& slots, Slots::Client client);

    ProxyCore* core_;
    std::optional<std::size_t> upstream_;
    std::vector<std::size_t> tried_;  // earlier ones
    UpstreamUse use_ = UpstreamUse::request;
    std::unique_ptr<char> tunnel_;  // whose address identifies a connection that is a WebSocket
    Slots::Slot slot_;
  };

  const UpstreamPlan::Share& share() const noexcept { return share_; }
  /// Returns true if so many slots are in use that a request should read a short body before it
  /// takes one.
  bool is_busy() const noexcept { return slots_.in_use() >= (slots_.slots() + 1) / 2; }

 private:
  static void on_drain(DrainObserver& self);
  static void on_connection(ConnectionObserver& self);
  void update_slots();
  void watch_change(bool will_wait);
  void collect(MetricSnapshot& sum) const override;
  void end(Request& request) noexcept;
  void release_client() noexcept;

  Loop& loop_;
  std::vector<Url> urls_;
  ClientOptions client_options_;
  std::shared_ptr<UpstreamPlan> plan_;
  UpstreamPlan::Share share_;
  ConnectionReserve::Use reserve_;
  Slots slots_;
  Slots websocket_slots_;
  Upstreams upstreams_;
  std::optional<Client> client_;
  std::optional<ClientPool> websocket_pool_;  // while there is a client
  std::size_t requests_ = 0;                  // in progress
  weir::detail::Counter total_;
  weir::detail::Counter failures_;
  weir::detail::Counter ejections_;
  weir::detail::Counter refused_;
};

/// The reverse proxies that a core has used. The loop owns it.
/// Threads: its loop's.
class ProxyCores {
 public:
  /// Returns the part of the proxy with the state `owner` for `loop`. It lives as long as the state
  /// does, or longer.
  ProxyCore& of(Loop& loop, const std::shared_ptr<const void>& owner,
                const std::vector<Url>& upstreams, const ReverseProxyOptions& options,
                const std::shared_ptr<UpstreamPlan>& plan);

 private:
  struct Entry {
    const void* key;
    std::weak_ptr<const void> owner;
    std::unique_ptr<ProxyCore> core;
  };
  std::vector<Entry> entries_;
};

}  // namespace weir::http
