// What an HTTP/2 connection keeps while it is idle.
#pragma once

#include "weir/base/detail/block_pool.hpp"
#include "weir/base/time.hpp"
#include "weir/http/detail/h2/hpack_encoder.hpp"
#include "weir/http/detail/h2/hpack_table.hpp"
#include "weir/http/detail/h2/session.hpp"
#include "weir/http/server/detail/server_state.hpp"
#include "weir/os/address.hpp"

namespace weir::http {

/// The state that an HTTP/2 connection keeps while it is idle.
struct H2ConnectionState {
  explicit H2ConnectionState(ServerState& server) noexcept;

  /// Returns the end of the time in which a connection without streams may be silent.
  Instant idle_deadline(const ServerState& server) const noexcept;

  H2Session session;
  HpackTable table;
  HpackEncoderState encoder;
  Instant idle_since;          ///< the end of the last stream
  BlockPtr<os::Address> peer;  ///< the result of Connection::peer_address(), if it was called
};

}  // namespace weir::http
