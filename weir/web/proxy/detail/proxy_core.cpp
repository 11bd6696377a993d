#include "weir/web/proxy/detail/proxy_core.hpp"

#include "weir/loop/detail/metric_row.hpp"

namespace weir::http {

ProxyCore::ProxyCore(Loop& loop, std::size_t upstreams, const ReverseProxyOptions& options)
    : DrainObserver(&on_drain),
      loop_(loop),
      client_options_(options.client),
      upstreams_(upstreams, options, loop.core()) {
  client_options_.limits.redirects_max = 0;
  client_options_.cookie_jar = nullptr;
  loop.metrics().add(*this);
  if (!loop.draining()) loop.observe_drain(*this);
}

ProxyCore::Request::Request(ProxyCore& core) : core_(&core) {
  if (!core.client_) {
    core.client_.emplace(core.client_options_);
    core.websocket_pool_.emplace(core.client_options_);
  }
  ++core.requests_;
  core.total_.add();
}

std::optional<std::size_t> ProxyCore::Request::choose() {
  if (upstream_) {
    tried_.push_back(*upstream_);
    core_->upstreams_.end(*upstream_);
    upstream_.reset();
  }
  upstream_ = core_->upstreams_.choose(core_->loop_.now(), tried_);
  if (upstream_) core_->upstreams_.begin(*upstream_);
  return upstream_;
}

void ProxyCore::Request::record_failure() {
  core_->failures_.add();
  if (core_->upstreams_.record_failure(*upstream_, core_->loop_.now())) core_->ejections_.add();
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
  };
  weir::detail::collect_rows<ProxyCore>(sum, rows, *this);
}

void ProxyCore::end(Request& request) noexcept {
  if (request.upstream_) upstreams_.end(*request.upstream_);
  --requests_;
  release_client();
}

/// Closes the idle connections when the loop drains and no request uses the client.
void ProxyCore::release_client() noexcept {
  if (!loop_.draining() || requests_ != 0) return;
  client_.reset();
  websocket_pool_.reset();
}

ProxyCore& ProxyCores::of(Loop& loop, const std::shared_ptr<const void>& owner,
                          std::size_t upstreams, const ReverseProxyOptions& options) {
  for (Entry& each : entries_) {
    if (each.key == owner.get() && !each.owner.expired()) return *each.core;
  }
  std::erase_if(entries_, [](const Entry& each) { return each.owner.expired(); });
  auto core = std::make_unique<ProxyCore>(loop, upstreams, options);
  return *entries_.emplace_back(owner.get(), owner, std::move(core)).core;
}

}  // namespace weir::http
