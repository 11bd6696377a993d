// The framing of HTTP/1: bodies as bytes of a connection, one message after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/detail/block_pool.hpp"
#include "weir/http/detail/h1/chunked.hpp"
#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/message/body_length.hpp"
#include "weir/http/server/detail/carrier.hpp"
#include "weir/http/server/detail/connection_io.hpp"
#include "weir/http/server/detail/exchange.hpp"
#include "weir/http/server/detail/served_websocket.hpp"
#include "weir/loop/loop.hpp"
#include "weir/net/stream.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// Carries the messages of one HTTP/1 connection (RFC 9112): a body has a length or chunks, and in
/// HTTP/1.0 the end of the connection ends the body of a response. Bytes of a request stay in the
/// input of the ConnectionIo. Responses are collected in its output.
/// Threads: its loop's.
class H1Carrier final : public Carrier, loop::HangupObserver {
 public:
  /// `context` is the connection's.
  H1Carrier(ConnectionIo& io, ServerState& server, Exchange& exchange,
            const Context& context) noexcept;

  /// Prepares for the message behind a head.
  /// Returns: the length of its body.
  BodyLength begin(const RequestHead& head) noexcept;
  /// Prepares for the answer to a head that is rejected.
  void begin_rejected() noexcept { keep_alive_ = false; }
  /// Returns true if another request may follow the present one.
  bool keeps_alive() const noexcept { return keep_alive_; }
  /// Sets what the peer sees if the connection is closed now.
  void set_close_mode(CloseMode mode);
  /// Returns the WebSocket that the connection becomes; nullptr if it becomes none.
  BlockPtr<ServedWebSocket>& websocket() noexcept { return websocket_; }

  os::Address peer_address() const override { return io_.peer_address(); }
  const TlsInfo* tls() const noexcept override { return io_.stream().tls(); }
  const void* connection() const noexcept override { return &io_; }
  bool gone() const noexcept override { return io_.broken() || exchange_.call().peer_gone(); }
  void watch_peer(bool watch) noexcept override;

  Taken take(Wanted wanted, Bytes& piece) override;
  void release_piece() override;
  Task<Result<>> wait_for_input(Instant until) override;
  std::uint64_t input_bytes() const noexcept override;
  const Headers& trailers() const noexcept override { return decoder_.trailers(); }

  Task<Result<>> send_interim(const ResponseHead& head) override;
  Sent send_common(const Response& response) override;
  Sent send_message(const ResponseHead& head, std::string_view text) override;
  Task<Result<>> send_rest(const ResponseHead& head, std::string_view text) override;
  std::uint64_t unsent() const noexcept override { return io_.unsent(); }
  void send_head(const ResponseHead& head, bool ends) override;
  Task<Result<>> send_piece(Bytes piece) override;
  bool may_send_file() const noexcept override;
  Result<std::size_t> try_send_file(const os::FilePart& part) override;
  void end(std::string_view trailers) override;
  bool needs_flush() const noexcept override { return !io_.writing() && !io_.output().empty(); }
  Task<Result<>> flush() override;
  void open_websocket(BlockPtr<ServedWebSocket> socket) override { websocket_ = std::move(socket); }

 private:
  Taken take_sized(Bytes& piece);
  Taken take_chunked(Bytes& piece);
  void decide_keep_alive() noexcept;
  ResponseHead framed(const ResponseHead& head) const;
  bool append_head(const ResponseHead& head);
  Task<Result<>> send_chunk(Bytes piece);

  ConnectionIo& io_;
  ServerState& server_;
  Exchange& exchange_;
  Context context_;
  ChunkedDecoder decoder_;
  std::uint64_t left_ = 0;    // bytes left of a body with a length
  std::size_t borrowed_ = 0;  // bytes of the last piece, at the input's front
  BlockPtr<ServedWebSocket> websocket_;
  bool chunked_ = false;                     // the framing of the request
  BodyFraming framing_ = BodyFraming::none;  // that of the streamed response
  bool keep_alive_ = true;
  CloseMode close_mode_ = CloseMode::orderly;
};

}  // namespace weir::http
