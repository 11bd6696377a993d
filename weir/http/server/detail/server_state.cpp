#include "weir/http/server/detail/server_state.hpp"

#include <memory>

#include "weir/http/server/detail/core_servers.hpp"
#include "weir/http/server/detail/plain_http_answer.hpp"
#include "weir/http/server/detail/request_id.hpp"

namespace weir::http {

ServerState::ServerState(Loop& loop, const Router& router, const ServeOptions& options,
                         ConnectionReserve* reserve)
    : loop_(loop),
      router_(router),
      limits_(options.limits),
      id_prefix_(request_id_prefix(loop.platform().wall_time(), loop.core())),
      routes_(loop, router.updater()),
      counters_(loop),
      connections_(*this, loop, options.limits.connections_max, reserve),
      websockets_(loop, counters_.websockets_open),
      lingering_streams_(loop),
      heads_(loop),
      tls_(options.tls),
      plain_http2_(options.plain_http2),
      proxy_protocol_(options.proxy_protocol) {
  loop.slots().get<CoreServers>().servers.push_back(*this);
  limits_.h2 = in_range(limits_.h2);
  limits_.h2.connect_protocol = true;
  if (options.observer != nullptr) {
    recorder_ = std::make_unique<RequestRecorder>(loop, *options.observer);
  }
  if (tls_ != nullptr) acceptor_.emplace(loop, *tls_).set_plain_answer(&plain_http_answer);
}

void ServerState::make_request_fields() {
  RequestFieldLimits limits;
  limits.head = limits_.head;
  limits.chunks = limits_.chunks;
  limits.list_bytes_max = limits_.h2.field_list_max;
  limits.extended_connect = limits_.h2.connect_protocol;
  request_fields_ = std::make_unique<RequestFieldReader>(limits);
}

}  // namespace weir::http
