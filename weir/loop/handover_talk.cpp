#include "weir/loop/handover_talk.hpp"

#include <poll.h>

#include <array>
#include <cerrno>
#include <utility>

#include "weir/os/clock.hpp"
#include "weir/os/local_packets.hpp"

namespace weir {

Woken wait_readable(int descriptor, int event, Instant until) {
  std::array<pollfd, 2> watched{{{descriptor, POLLIN, 0}, {event, POLLIN, 0}}};
  for (;;) {
    const int ready =
        ::poll(watched.data(), watched.size(), os::to_poll_timeout(until, os::monotonic_now()));
    if (ready < 0) continue;  // EINTR, or no memory just now
    if (watched[1].revents != 0) {
      os::drain_event(event);
      return Woken::interrupted;
    }
    return ready == 0 ? Woken::timed_out : Woken::readable;
  }
}

HandoverTalk::HandoverTalk(os::Fd connection, int interrupting)
    : connection_(std::move(connection)),
      interrupting_(interrupting),
      room_(HandoverMessage::bytes_max) {}

HandoverTalk::Heard HandoverTalk::hear(Instant until) {
  for (;;) {
    switch (wait_readable(connection_.get(), interrupting_, until)) {
      case Woken::interrupted:
        return Heard::interruption;
      case Woken::timed_out:
        return Heard::nothing;
      case Woken::readable:
        break;
    }
    const Heard heard = receive();
    if (heard != Heard::nothing) return heard;
  }
}

HandoverTalk::Heard HandoverTalk::hear_undisturbed(Instant until) {
  Heard heard = Heard::interruption;
  while (heard == Heard::interruption) heard = hear(until);
  return heard;
}

HandoverTalk::Heard HandoverTalk::receive() {
  auto packet = os::receive_packet(connection_.get(), room_);
  if (!packet) {
    if (packet.error() == system_error(EAGAIN)) return Heard::nothing;
    return packet.error() == system_error(EMSGSIZE) ? Heard::garbage : Heard::end;
  }
  if (packet->size == 0) return Heard::end;
  auto message = decode_handover(Bytes(room_).first(packet->size));
  if (!message) {
    return message.error() == Errc::unsupported ? Heard::other_version : Heard::garbage;
  }
  // Each socket has its descriptor, and nothing else has one.
  if (message->sockets.size() != packet->descriptors.size()) return Heard::garbage;
  message_ = std::move(*message);
  descriptors_ = std::move(packet->descriptors);
  return Heard::message;
}

Result<> HandoverTalk::say(const HandoverMessage& message, std::span<const int> descriptors) {
  return os::send_packet(connection_.get(), encode(message), descriptors);
}

void HandoverTalk::refuse(std::string_view why) {
  // Where it does not listen, it finds out by itself.
  static_cast<void>(say({.kind = HandoverMessage::Kind::refuse, .text = handover_text(why)}));
}

void HandoverTalk::stop_listening() noexcept {
  static_cast<void>(os::shut_down_receiving(connection_.get()));
}

std::string describe(HandoverTalk::Heard heard, const HandoverMessage& message) {
  using Heard = HandoverTalk::Heard;
  switch (heard) {
    case Heard::message:
      if (message.kind == HandoverMessage::Kind::refuse) return "it refuses: " + message.text;
      return "it says what is out of place";
    case Heard::nothing:
      return "it does not answer";
    case Heard::end:
      return "it has gone";
    case Heard::other_version:
      return "it speaks another version of the protocol";
    case Heard::garbage:
    case Heard::interruption:
      break;
  }
  return "what it says is no message, or none with all of its descriptors";
}

}  // namespace weir
