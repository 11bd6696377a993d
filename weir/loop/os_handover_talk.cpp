#include "weir/loop/os_handover_talk.hpp"

#include <poll.h>

#include <array>
#include <cerrno>
#include <utility>

#include "weir/os/detail/io/clock.hpp"
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

OsHandoverTalk::OsHandoverTalk(Host& host, os::Fd connection, int interrupting)
    : host_(host),
      connection_(std::move(connection)),
      interrupting_(interrupting),
      room_(HandoverMessage::bytes_max) {}

std::string OsHandoverTalk::distrust() {
  const auto user = os::peer_user(connection_.get());
  if (!user) return user.error().message();
  if (*user == os::own_user() || *user == 0) return {};
  return "the process there belongs to user " + std::to_string(*user);
}

HandoverTalk::Heard OsHandoverTalk::hear(Instant until) {
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

HandoverTalk::Heard OsHandoverTalk::receive() {
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
  sockets_.clear();
  for (os::Fd& each : packet->descriptors) sockets_.emplace_back(host_, each.release());
  return Heard::message;
}

Result<> OsHandoverTalk::send(const HandoverMessage& message, std::span<const int> sockets) {
  return os::send_packet(connection_.get(), encode(message), sockets);
}

void OsHandoverTalk::stop_listening() noexcept {
  static_cast<void>(os::shut_down_receiving(connection_.get()));
}

}  // namespace weir
