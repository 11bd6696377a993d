// The trace context of one request, with its id for logs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/time.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/loop/contract/detail/trace_context.hpp"

namespace weir::http {

class ServerState;
struct Route;

/// The trace context of a request loop, for one request after another. It costs a request one
/// store, because the id is made only when a caller requests it.
/// Threads: the server's; id() on any thread while a handler runs, because the head does not move
/// then.
class RequestTrace final : public TraceContext {
 public:
  RequestTrace(const ServerState& server, const RequestHead& head) noexcept
      : server_(server), head_(head) {}

  /// Begins a request. No other request of this server on this core has this `number`.
  void begin(std::uint64_t number) noexcept { number_ = number; }
  void set_route(const Route* route) noexcept { route_ = route; }

  std::string_view kind() const noexcept override { return "request"; }
  /// Returns the client's value of the header that the router trusts; else an id like
  /// "k3v90x-0-57". Its parts are the server's start, the core and the number of the request.
  std::string_view id(IdBuffer room) const noexcept override;
  const void* origin() const noexcept override { return route_; }

 private:
  const ServerState& server_;
  const RequestHead& head_;
  const Route* route_ = nullptr;
  std::uint64_t number_ = 0;
};

/// Returns the prefix of the ids of requests, for a server that begins at `now` on `core`. Two
/// servers of one service, one after the other or side by side, make different ids.
std::string request_id_prefix(WallTime now, unsigned core);

/// Returns true if a text from a client may be a request's id: 1 to 128 visible characters,
/// without quotation marks and backslashes.
bool is_request_id(std::string_view text) noexcept;

}  // namespace weir::http
