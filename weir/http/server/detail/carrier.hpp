// What a protocol offers to the exchanges that it carries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/base/detail/block_pool.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/detail/h1/writer.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/message/response.hpp"
#include "weir/os/address.hpp"
#include "weir/task/task.hpp"

namespace weir {
struct TlsInfo;
namespace os {
struct FilePart;
}  // namespace os
}  // namespace weir

namespace weir::http {

class ServedWebSocket;

/// A Carrier frames one request and its response at a time: HTTP/1 as bytes in order, HTTP/2 as a
/// stream. It decides nothing about messages: an Exchange has all rules, and calls the Carrier. The
/// carrier tells the Exchange what the peer does: see RequestBody::count(), RequestBody::fail() and
/// Exchange::on_peer_gone(). The comment of Exchange has the order of its calls. A smallest carrier
/// is tests/messages/memory_carrier.cpp.
///
/// A message is cut if Exchange::response().failed() is true behind run(). No member reports the
/// cut: the carrier, whose end() was not called, then shows the peer that a part is missing.
/// Errors: a member that needs memory throws std::bad_alloc.
/// Threads: its loop's.
/// Lifetime: it outlives the Exchange.
class Carrier {
 public:
  Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  // The peer.

  virtual os::Address peer_address() const = 0;
  virtual const TlsInfo* tls() const noexcept = 0;
  /// Returns an address that the carriers of one connection share.
  virtual const void* connection() const noexcept = 0;
  virtual bool is_http2() const noexcept { return false; }
  /// Returns true if a success to this request would begin a tunnel (RFC 9110 §9.3.6).
  virtual bool is_connect() const noexcept { return false; }
  /// Returns true if nothing more can be sent to the peer. It then stays true for this request.
  virtual bool gone() const noexcept = 0;
  /// Begins or ends to call Exchange::on_peer_gone() when the peer leaves. A carrier that always
  /// learns of it need not do anything.
  virtual void watch_peer(bool /*watch*/) noexcept {}

  // The body of the request.

  /// How the reader wants the bytes: as they come, or all of them in one piece. A carrier that
  /// does not keep bytes may answer the second wish with pieces.
  enum class Wanted : std::uint8_t { piece, whole };
  /// What take() has found.
  enum class Taken : std::uint8_t {
    nothing,     ///< bytes or the end are still to come, or RequestBody::fail() was called
    piece,       ///< bytes
    last_piece,  ///< bytes, and the end behind them
    end,         ///< the end
  };
  /// Takes bytes of the body that have arrived. The carrier counts each byte once with
  /// RequestBody::count(), on its arrival or here. If count() returns false, the carrier drops the
  /// bytes, and take() returns `nothing`. A piece is not empty, because an empty one would be the
  /// end for a handler. The end follows exactly the announced number of bytes; the carrier calls
  /// RequestBody::fail() for any other number, or if its framing is malformed.
  /// Lifetime: the piece is valid until release_piece().
  virtual Taken take(Wanted wanted, Bytes& piece) = 0;
  /// Ends the use of the last piece, if there is one.
  virtual void release_piece() = 0;
  /// Waits until more has arrived, the body has failed, or `until` has come. It may return without
  /// any of them, because the caller takes again.
  /// Errors: those of the connection; Errc::timed_out.
  /// Cancel: no data is lost.
  virtual Task<Result<>> wait_for_input(Instant until) = 0;
  /// Returns the number of bytes that the peer has sent. Only differences are used.
  virtual std::uint64_t input_bytes() const noexcept = 0;
  /// Returns false while the carrier itself keeps the peer from sending, by flow control.
  virtual bool may_arrive() const noexcept { return true; }
  /// Returns the trailers of the request. Nothing reads them before take() has given the end.
  virtual const Headers& trailers() const noexcept = 0;

  // The response. The carrier limits the time of its waits by Limits::write_rate. A head and its
  // lines are valid during the call, or until the end of its task.

  /// Sends an interim response (RFC 9110 §15.2). `head` has its status and header lines.
  /// Cancel: not affected; a part of a head would spoil the response behind it.
  virtual Task<Result<>> send_interim(const ResponseHead& head) = 0;

  /// How much of a message the carrier has taken.
  enum class Sent : std::uint8_t {
    whole,    ///< all of it
    part,     ///< send_rest() follows, unless the carrier itself finishes the exchange
    nothing,  ///< send_message() follows
  };
  /// Sends a response that Call::has_common_head(), if the carrier has a prepared head for it.
  virtual Sent send_common(const Response& response) = 0;
  /// Sends a message whose body is `text`, with its end. The text stays valid until the end of the
  /// exchange. An empty text may have a head that announces bytes: the response to a HEAD.
  /// Returns: `whole` or `part`. A carrier without a limit of its output returns `whole`.
  virtual Sent send_message(const ResponseHead& head, std::string_view text) = 0;
  /// Waits until a message of which send_message() has taken a part is handed over.
  /// Errors: those of the connection.
  /// Cancel: the message is cut off.
  virtual Task<Result<>> send_rest(const ResponseHead& head, std::string_view text) = 0;
  /// Returns the number of bytes at the end of a text that were not handed over.
  virtual std::uint64_t unsent() const noexcept = 0;

  /// Sends the head of a message whose body follows. With `ends`, neither a body nor trailers do.
  virtual void send_head(const ResponseHead& head, bool ends) = 0;
  /// Sends a piece behind the head, and waits while the peer is slow. It fails if gone(), even
  /// without a head. The piece is valid until the end of the task.
  /// Errors: those of the connection; Errc::timed_out if the peer was too slow.
  /// Cancel: the message is cut off.
  virtual Task<Result<>> send_piece(Bytes piece) = 0;
  /// Returns true if try_send_file() may send bytes now.
  virtual bool may_send_file() const noexcept { return false; }
  /// Sends bytes of a file behind the head, as BodySink::try_write_file() does.
  virtual Result<std::size_t> try_send_file(const os::FilePart& /*part*/) { return 0; }
  /// Ends the message behind its head and its pieces. `trailers` are header lines, which a message
  /// that cannot express them leaves out.
  virtual void end(std::string_view trailers) = 0;
  /// Returns true if output waits for flush().
  virtual bool needs_flush() const noexcept { return false; }
  /// Sends the output, so that it does not wait for a slow handler.
  /// Errors: those of the connection.
  /// Cancel: the message is cut off.
  virtual Task<Result<>> flush() = 0;
  /// Takes the WebSocket that follows a head without an end. A carrier without tunnels
  /// destroys it, and cuts the message.
  virtual void open_websocket(BlockPtr<ServedWebSocket> socket) = 0;

 protected:
  ~Carrier() = default;
};

}  // namespace weir::http
