// What a client's pool knows of one origin: its connections, and the requests that wait for one.
#pragma once

#include <cstddef>
#include <string_view>

#include "weir/base/detail/list.hpp"
#include "weir/base/time.hpp"
#include "weir/http/client/detail/pooled_connection.hpp"
#include "weir/task/sync/event.hpp"
#include "weir/task/sync/semaphore.hpp"

namespace weir::http {

class H2ClientConnection;

/// The place of a connection of HTTP/2 in a list of connections.
struct Http2Node : weir::detail::ListNode {
  explicit Http2Node(H2ClientConnection& owner) noexcept : connection(owner) {}
  H2ClientConnection& connection;
};

/// The place of a request in a queue.
struct RequestNode : weir::detail::ListNode {
  explicit RequestNode(AutoResetEvent& event) noexcept : changed(event) {}
  AutoResetEvent& changed;
};

/// The requests that wait, in the order of arrival.
using RequestQueue = weir::detail::List<RequestNode>;

/// An origin that has connections or requests. A Unix socket is one origin for all http URLs, and
/// so is a proxy without tunnels.
struct ClientOrigin {
  explicit ClientOrigin(std::size_t connections_max) noexcept
      : permits(connections_max), permits_max(connections_max) {}
  std::string_view name;
  Semaphore permits;
  const std::size_t permits_max;
  std::size_t idle_count = 0;                       // of `idle`
  std::size_t queued = 0;                           // of `waiting`
  weir::detail::List<PooledConnection::Node> idle;  // the last used one first
  weir::detail::List<Http2Node> http2;  // the connections that may carry another request
  RequestQueue waiting;                 // requests, in the order of arrival
  std::size_t opening = 0;              // leases whose connection may become one of HTTP/2
  std::size_t users = 0;                // leases, and connections that are idle or dead
  Instant opened = Instant::min();      // when the last connection was opened
  bool is_http1 = false;                // the last connection that was opened speaks HTTP/1.1
  std::size_t requests_max = 1;         // of the last connection whose settings have arrived
};

}  // namespace weir::http
