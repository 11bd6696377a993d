#include "weir/http/server/detail/server_state.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "weir/http/server/detail/request_trace.hpp"

namespace weir::http {

/// Runs on any thread, see MetricSource. Parse errors with a count of 0 are left out.
void ServerCounters::collect(MetricSnapshot& sum) const {
  const auto total = [&sum](std::string name, const weir::detail::Counter& counter) {
    sum.add({std::move(name), counter.value()});
  };
  total("http connections", connections_accepted);
  sum.add({"http connections open", connections_open.value(), Metric::Kind::gauge});
  total("http connections rejected", connections_rejected);
  total("http connections without a request", silent_connections);
  total("http slow readers", slow_readers);
  total("http requests", requests);
  total("http responses", responses);
  total("http handler failures", handler_failures);
  for (std::size_t index = 1; index < parse_error_count; ++index) {
    if (parse_errors[index].value() == 0) continue;
    total("http requests rejected: " + std::string(name_of(static_cast<ParseError>(index))),
          parse_errors[index]);
  }
}

std::string ServerCounters::summary() const {
  std::string text = std::to_string(connections_accepted.value()) + " connections, " +
                     std::to_string(requests.value()) + " requests";
  const auto mention = [&text](std::uint64_t count, std::string_view what) {
    if (count == 0) return;
    text.append(", ").append(std::to_string(count)).append(" ").append(what);
  };
  mention(connections_rejected.value(), "connections rejected");
  mention(silent_connections.value(), "without a request");
  mention(slow_readers.value(), "slow readers");
  mention(handler_failures.value(), "handler failures");
  for (std::size_t index = 0; index < parse_error_count; ++index) {
    mention(parse_errors[index].value(), name_of(static_cast<ParseError>(index)));
  }
  return text;
}

void ResponseHeads::refresh() noexcept {
  const WallTime now = loop_.platform().wall_time();
  date_ = Date(now);
  common_ = ResponseHeadCache();
  common_block_ = ResponseBlockCache();
  const Duration into_second = now.time_since_epoch() % std::chrono::seconds(1);
  date_until_ = after(loop_.now(), std::chrono::seconds(1) - into_second);
}

ServerState::ServerState(Loop& loop, const Router& router, const Limits& limits,
                         std::shared_ptr<tls::Server> tls, PlainHttp2 plain_http2)
    : loop_(loop),
      router_(router),
      limits_(limits),
      id_prefix_(request_id_prefix(loop.platform().wall_time(), loop.core())),
      routes_(loop, router.updater()),
      counters_(loop),
      connections_(*this, loop, limits.connections_max),
      lingering_streams_(loop),
      heads_(loop),
      tls_(std::move(tls)),
      plain_http2_(plain_http2) {
  if (tls_ != nullptr) acceptor_.emplace(loop, *tls_);
}

void ServerState::make_request_fields() {
  RequestFieldLimits limits;
  limits.head = limits_.head;
  limits.list_bytes_max = limits_.h2.field_list_max;
  limits.extended_connect = limits_.h2.connect_protocol;
  request_fields_ = std::make_unique<RequestFieldReader>(limits);
}

}  // namespace weir::http
