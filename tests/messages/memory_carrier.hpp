// A carrier without a protocol: requests and responses are objects in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tests/messages/memory_wire.hpp"
#include "weir/http/server/detail/exchange.hpp"
#include "weir/http/server/detail/served_websocket.hpp"
#include "weir/task/task.hpp"

namespace weir::tests::messages {

/// Carries the request and the response of a MemoryWire. It is written from carrier.hpp and
/// exchange.hpp alone, as the carrier of a third protocol would be.
/// Threads: its loop's.
/// Lifetime: the server and the cancellation of its context outlive it.
class MemoryCarrier final : public http::Carrier {
 public:
  /// Serves the request of `wire`, until its response has ended and its body has come or is given
  /// up.
  /// Cancel: cancels the handler, and cuts the response.
  static Task<> serve(http::ServerState& server, std::shared_ptr<MemoryWire> wire);

  os::Address peer_address() const override { return os::Address::loopback(1); }
  const TlsInfo* tls() const noexcept override { return nullptr; }
  const void* connection() const noexcept override { return &wire_; }
  bool is_connect() const noexcept override;
  bool gone() const noexcept override { return wire_.response_body.closed(); }

  Taken take(Wanted wanted, Bytes& piece) override;
  void release_piece() override { lent_.clear(); }
  Task<Result<>> wait_for_input(Instant until) override;
  std::uint64_t input_bytes() const noexcept override { return wire_.request_body.sent_bytes(); }
  const http::Headers& trailers() const noexcept override { return wire_.request_trailers; }

  Task<Result<>> send_interim(const http::ResponseHead& head) override;
  Sent send_common(const http::Response& /*response*/) override { return Sent::nothing; }
  Sent send_message(const http::ResponseHead& head, std::string_view text) override;
  Task<Result<>> send_rest(const http::ResponseHead& head, std::string_view text) override;
  std::uint64_t unsent() const noexcept override { return unsent_.size(); }
  void send_head(const http::ResponseHead& head, bool ends) override;
  Task<Result<>> send_piece(Bytes piece) override;
  void end(std::string_view trailers) override;
  Task<Result<>> flush() override;
  void open_websocket(BlockPtr<http::ServedWebSocket> /*socket*/) override {}  // the wire is cut

 private:
  MemoryCarrier(http::ServerState& server, MemoryWire& wire, const Context& context) noexcept
      : server_(server), wire_(wire), exchange_(server, *this, context) {}

  http::Exchange::Next begin();
  Task<> serve();
  void on_left();

  http::ServerState& server_;
  MemoryWire& wire_;
  std::string head_;         // the text of the request's head
  std::string lent_;         // the piece that take() has returned
  std::string_view unsent_;  // of a text
  http::Exchange exchange_;
};

}  // namespace weir::tests::messages
