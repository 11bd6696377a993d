// The trace context of one request, with its id for logs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/http/matching/detail/route_match.hpp"
#include "weir/http/message/detail/request_head.hpp"
#include "weir/loop/contract/detail/trace_context.hpp"

namespace weir::http {

class ServerState;

/// The trace context of a request loop, for one request after another. It costs a request one
/// store, because the id is made only when a caller requests it.
/// Threads: the server's; id() on any thread while a handler runs, because the head does not move
/// then.
class RequestTrace final : public TraceContext {
 public:
  RequestTrace(const ServerState& server, const RequestHead& head) noexcept
      : server_(server), head_(head) {}

  /// Begins a request. No other request of this server on this core has this `number`.
  void begin(std::uint64_t number) noexcept {
    number_ = number;
    clear_span();
  }
  void set_route(const Route* route) noexcept { route_ = route; }

  std::string_view kind() const noexcept override { return "request"; }
  /// Returns the client's value of the header that the router trusts; else an id like
  /// "k3v90x-0-57". Its parts are the server's start, the core and the number of the request.
  std::string_view id(IdBuffer room) const noexcept override;
  /// Returns the method and the pattern of the route.
  std::string_view name(IdBuffer room) const noexcept override;
  const void* origin() const noexcept override { return route_; }
  /// Returns the first header tracestate.
  std::string_view trace_state() const noexcept override {
    return head_.header("tracestate").value_or(std::string_view());
  }
  /// Returns the place of the route's address in this object, in bytes, for a profiler that reads a
  /// copy of the object.
  std::size_t route_offset() const noexcept {
    return static_cast<std::size_t>(reinterpret_cast<const char*>(&route_) -
                                    reinterpret_cast<const char*>(this));
  }

 private:
  const ServerState& server_;
  const RequestHead& head_;
  const Route* route_ = nullptr;
  std::uint64_t number_ = 0;
};

}  // namespace weir::http
