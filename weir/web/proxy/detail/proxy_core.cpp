#include "weir/web/proxy/detail/proxy_core.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "weir/http/client/detail/client_access.hpp"
#include "weir/loop/detail/metric_row.hpp"
#include "weir/tls/client.hpp"

namespace weir::http {
namespace {

/// Returns the limits of what the clients of the proxy share.
detail::ClientSlots::Limits limits_of(const ClientOptions& options, std::size_t slots) noexcept {
  return {{slots, options.limits.waiting_max}, options.limits.queue_timeout};
}

}  // namespace

std::size_t requests_per_connection(const ClientOptions& options) noexcept {
  const bool by_alpn = options.tls != nullptr && std::ranges::find(options.tls->options().protocols,
                                                                   std::string_view("h2")) !=
                                                     options.tls->options().protocols.end();
  return options.plain_http2 || by_alpn ? in_range(options.limits.http2).streams_max : 1;
}

ProxyCore::ProxyCore(Loop& loop, std::vector<Url> upstreams, const ReverseProxyOptions& options,
                     std::shared_ptr<UpstreamPlan> plan)
    : DrainObserver(&on_drain),
      ConnectionObserver(&on_connection),
      loop::Timer([](loop::Timer& self) { static_cast<ProxyCore&>(self).update_slots(); }),
      loop_(loop),
      urls_(std::move(upstreams)),
      client_options_(options.client),
      plan_(std::move(plan)),
      share_(plan_->share_of(loop, urls_.size(), options)),
      reserve_(&plan_->reserve(), loop),
      slots_(loop, limits_of(options.client, share_.connections)),
      websocket_slots_(loop, limits_of(options.client, share_.websockets)),
      upstreams_(urls_.size(), options, share_.connections, loop.core()) {
  ClientLimits& limits = client_options_.limits;
  limits.connections_max = share_.connections;
  limits.connections_per_origin_max =
      std::min(limits.connections_per_origin_max, share_.connections);
  limits.redirects_max = 0;
  client_options_.cookie_jar = nullptr;
  loop.metrics().add(*this);
  if (!loop.draining()) loop.observe_drain(*this);
}

ProxyCore::Request::Request(ProxyCore& core) : core_(&core) {
  if (!core.client_) {
    core.client_.emplace(core.client_options_);
    core.websocket_pool_.emplace(core.client_options_);
    detail::ClientAccess::pool_of(*core.client_).observe_connections(&core);
  }
  core.update_slots();
  ++core.requests_;
  core.total_.add();
}

bool ProxyCore::Request::try_take_slot(const http::Request& request) {
  auto slot = core_->slots_.try_acquire(core_->slots_.client_of(request));
  if (slot) slot_ = std::move(*slot);
  return static_cast<bool>(slot_);
}

Task<Result<>> ProxyCore::Request::take_slot(const http::Request& request) {
  return wait_for(core_->slots_, core_->slots_.client_of(request));
}

Task<Result<>> ProxyCore::Request::take_websocket_slot(const http::Request& request) {
  use_ = UpstreamUse::websocket;
  Slots::Client client = core_->websocket_slots_.client_of(request);
  if (request.version() != Version::http_2) {
    // The connection becomes the WebSocket, and its address may be used again.
    tunnel_ = std::make_unique<char>();
    client.connection = tunnel_.get();
  }
  return wait_for(core_->websocket_slots_, client);
}

Task<Result<>> ProxyCore::Request::wait_for(Slots& slots, Slots::Client client) {
  core_->watch_change(true);
  auto acquiring = slots.acquire(client);
  auto slot = co_await std::move(acquiring);
  core_->watch_change(false);
  if (!slot) {
    if (slot.error() != Errc::cancelled) core_->refused_.add();
    co_return fail(slot.error());
  }
  slot_ = std::move(*slot);
  co_return {};
}

std::optional<std::size_t> ProxyCore::Request::choose() {
  if (upstream_) {
    tried_.push_back(*upstream_);
    core_->upstreams_.end(*upstream_, use_);
    upstream_.reset();
  }
  upstream_ = core_->upstreams_.choose(core_->loop_.now(), tried_);
  if (upstream_) core_->upstreams_.begin(*upstream_, use_);
  return upstream_;
}

void ProxyCore::Request::try_again() noexcept {
  core_->upstreams_.end(*upstream_, use_);
  upstream_.reset();
}

void ProxyCore::Request::record_failure() {
  core_->failures_.add();
  if (!core_->upstreams_.record_failure(*upstream_, core_->loop_.now())) return;
  core_->ejections_.add();
  core_->update_slots();
}

void ProxyCore::on_connection(ConnectionObserver& self) {
  auto& core = static_cast<ProxyCore&>(self);
  ClientPool& pool = detail::ClientAccess::pool_of(*core.client_);
  for (std::size_t index = 0; index < core.urls_.size(); ++index) {
    const std::size_t requests = pool.requests_per_connection(core.urls_[index]);
    core.upstreams_.set_requests_per_connection(index, requests);
  }
  core.update_slots();
}

/// Makes as many slots as the upstreams carry requests now.
void ProxyCore::update_slots() {
  const std::size_t slots = std::max<std::size_t>(upstreams_.capacity(loop_.now()), 1);
  if (slots != slots_.slots()) slots_.set_slots(slots);
  watch_change(false);
}

/// Updates the slots at the end of an ejection too, if requests wait for one or `will_wait`.
void ProxyCore::watch_change(bool will_wait) {
  const Instant next = upstreams_.next_change();
  const bool waits = will_wait || slots_.waiting() != 0;
  if (!waits || next == never) return loop::Timer::cancel();
  if (!armed() || deadline() != next) loop_.timers().start(*this, next);
}

void ProxyCore::on_drain(DrainObserver& self) {
  static_cast<ProxyCore&>(self).release_client();
}

void ProxyCore::collect(MetricSnapshot& sum) const {
  using Row = weir::detail::MetricRow<ProxyCore>;
  using weir::detail::count_of;
  static constexpr Row rows[]{
      {"http proxy requests",
       count_of<&ProxyCore::total_>,
       {"weir.proxy.requests", "{request}", "Requests passed to upstream servers."}},
      {"http proxy upstream failures",
       count_of<&ProxyCore::failures_>,
       {"weir.proxy.upstream.failures", "{failure}", "Failures of upstream servers."}},
      {"http proxy upstreams ejected",
       count_of<&ProxyCore::ejections_>,
       {"weir.proxy.upstream.ejections", "{ejection}",
        "Upstream servers taken out after failures."}},
      {"http proxy requests without an upstream",
       count_of<&ProxyCore::refused_>,
       {"weir.proxy.requests.refused", "{request}",
        "Requests and WebSockets that got no upstream, because all were in use."}},
      {"http proxy websockets",
       [](const ProxyCore& core) -> std::uint64_t { return core.websocket_slots_.in_use(); },
       {"weir.proxy.websockets", "{connection}", "WebSockets at upstream servers."},
       Metric::Kind::gauge},
  };
  weir::detail::collect_rows<ProxyCore>(sum, rows, *this);
}

void ProxyCore::end(Request& request) noexcept {
  if (request.upstream_) upstreams_.end(*request.upstream_, request.use_);
  --requests_;
  if (loop_.now() >= upstreams_.next_change()) update_slots();
  release_client();
}

/// Closes the idle connections when the loop drains and no request uses the client.
void ProxyCore::release_client() noexcept {
  if (!loop_.draining() || requests_ != 0) return;
  client_.reset();
  websocket_pool_.reset();
}

ProxyCore& ProxyCores::of(Loop& loop, const std::shared_ptr<const void>& owner,
                          const std::vector<Url>& upstreams, const ReverseProxyOptions& options,
                          const std::shared_ptr<UpstreamPlan>& plan) {
  for (Entry& each : entries_) {
    if (each.key == owner.get() && !each.owner.expired()) return *each.core;
  }
  std::erase_if(entries_, [](const Entry& each) { return each.owner.expired(); });
  auto core = std::make_unique<ProxyCore>(loop, upstreams, options, plan);
  return *entries_.emplace_back(owner.get(), owner, std::move(core)).core;
}

}  // namespace weir::http
