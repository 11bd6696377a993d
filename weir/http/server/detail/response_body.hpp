// The policy of bodies that leave, on every carrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>

#include "weir/http/message/body.hpp"
#include "weir/http/server/detail/call.hpp"
#include "weir/http/server/detail/carrier.hpp"
#include "weir/task/task.hpp"

namespace weir::http {

/// Sends the response of a Call: its head once, then its text or what a function writes, then its
/// end. A body that fails after its head is cut off, which never looks like an end.
///
/// ```text
///          head       end
///   none ---> begun ---> sent
///    |  \       |          ^
///    |   +---------------- + whole message
///    |          +-------> cut
///    +------------------> dropped
/// ```
/// Threads: its loop's.
class ResponseBody {
 public:
  using Sent = Carrier::Sent;
  enum class State : std::uint8_t {
    none,     ///< the peer has nothing of the response
    begun,    ///< the peer has the head, or gets it
    sent,     ///< the carrier has all of the response
    cut,      ///< the rest behind the head will not be sent
    dropped,  ///< nothing of the response will be sent
  };

  ResponseBody(Call& call, Carrier& carrier) noexcept : call_(call), carrier_(carrier) {}

  void begin() noexcept { state_ = State::none; }
  State state() const noexcept { return state_; }

  /// Sends a response whose body is a text, as far as that needs no wait.
  /// Returns: `nothing` for a body that a function writes; send() sends it.
  Sent send_now();
  /// Sends any response, or cuts it off.
  /// Cancel: passed on to the function that writes the body.
  Task<> send();
  /// Sends the rest of a message of which send_now() has sent a part.
  /// Cancel: the message is cut off.
  Task<> send_rest();
  /// Sends the head of a response that accepts a WebSocket.
  void send_upgrade();
  /// The carrier has sent that rest without send_rest().
  void on_rest_sent() noexcept { change(State::sent); }
  /// Ends a response that cannot be sent.
  void cut() noexcept;
  /// Returns true if the peer will not get all of the response.
  bool failed() const noexcept { return state_ == State::cut || state_ == State::dropped; }
  /// Reports the end of the response to the Call.
  void report() noexcept;

 private:
  friend class ResponseSink;

  void change(State next) noexcept;
  std::string_view text() const;
  Call::StreamClient client() const noexcept;
  void send_head(bool ends);
  Task<> stream();
  Task<Result<>> send_piece(Bytes piece);
  Result<std::size_t> try_send_file(const os::FilePart& part);

  Call& call_;
  Carrier& carrier_;
  State state_ = State::none;
};

}  // namespace weir::http
