// Streams on io_uring: a receive that stays armed, one send at a time, a watch for hang-ups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "weir/loop/contract/detail/backend.hpp"
#include "weir/loop/uring_socket.hpp"
#include "weir/loop/uring_unread.hpp"

namespace weir::uring {

/// A stream. The kernel receives by itself from the first receive() or watch() on; what arrives
/// while nobody receives is queued. When `unread_max` bytes wait, or are held by the buffers that
/// they wait in, receiving pauses until half of that has been read. While it pauses, and after the
/// peer has finished, a poll request looks out for hang-ups in its place.
///
/// The first request receives only once: a connection that lives for one exchange then leaves
/// nothing behind that had to be cancelled.
///
/// The kernel (6.18) can lose a reset that comes while an armed receive delivers data: the request
/// stays armed for ever and reports nothing. So a stream whose receive goes on behind data is
/// doubted: check() puts a poll request beside the receive, once, and when that sees an end, the
/// receive is asked for anew.
class Stream : public SocketState {
 public:
  Stream(int value, std::size_t unread_max) noexcept;

  bool receive(Core& core, ReceiveOperation& operation);
  bool send(Core& core, SendOperation& operation);
  bool connect(Core& core, ConnectOperation& operation);
  void cancel(Core& core, Operation& operation);
  Result<> shut_down_sending(Core& core);
  void watch(Core& core, HangupWatcher* watcher);
  /// Ends the armed requests. No operation is pending.
  void stop(Core& core);

  void completed(Core& core, const Completion& completion);
  /// Tries again to arm the receive, for which there was no memory or no buffer.
  void resume(Core& core);
  /// Makes sure that the armed receive, which is doubted, misses no end.
  void check(Core& core);

 private:
  void receive_completed(Core& core, const Completion& completion);
  void send_completed(Core& core, int result);
  void connect_completed(Core& core, int result);
  void hangup_completed(Core& core, const Completion& completion);

  void arm_receive(Core& core);
  void arm_hangup(Core& core);
  void keep_armed(Core& core);
  bool wants_more() const noexcept;
  void arrived(Core& core, std::uint16_t buffer, std::size_t size);
  void queue(Core& core, std::uint16_t buffer, std::size_t size, std::size_t used);
  void receive_failed(Core& core, int error);
  void take_unread(ReceiveOperation& operation) noexcept;
  void submit_send(Core& core);
  void submit_connect(Core& core);
  void die(Core& core);

  bool receive_armed_ : 1 = false;  // its last completion has not come
  bool multishot_ : 1 = false;      // it goes on by itself, up to a limit
  bool began_ : 1 = false;          // something has arrived
  bool hangup_armed_ : 1 = false;
  bool doubted_ : 1 = false;          // it is in Core::doubted
  bool starved_ : 1 = false;          // it is in Core::starved
  bool output_stopping_ : 1 = false;  // the pending send or connect has been cancelled
  bool ended_ : 1 = false;            // the peer has finished sending
  bool finished_ : 1 = false;         // so have we
  bool reset_ : 1 = false;            // a send was told so, and the kernel tells it only once
  bool dead_ : 1 = false;
  std::int16_t error_ = 0;  // an errno: what every further receive gets
  std::uint32_t unread_max_;
  Unread unread_;
  ReceiveOperation* receiving_ = nullptr;
  Operation* output_ = nullptr;  // a send or a connect
  HangupWatcher* watcher_ = nullptr;
};

static_assert(sizeof(Stream) <= 80, "there is one for each idle connection");

}  // namespace weir::uring
