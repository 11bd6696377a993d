// WebSocket connections: sending the messages of topics.
#include <algorithm>
#include <array>
#include <cstring>

#include "weir/http/ws/detail/connection.hpp"

namespace weir::http {

/// Returns true if messages of topics can be sent.
bool WsConnection::has_messages() const noexcept {
  const WsActivity& a = *activity_;
  return !a.topics.empty() && !a.within_frame && !a.session.sends_message() && may_send();
}

/// Returns true if publishers wait for this connection, because its handler sends the pieces of a
/// message.
bool WsConnection::blocks_topic() const noexcept {
  const auto& topics = activity_->topics;
  for (const TopicMember::Place* each = topics.front(); each != nullptr;
       each = topics.next(*each)) {
    if (each->member.blocks()) return true;
  }
  return false;
}

/// Adds messages of topics to the `count` pieces of the next write. Returns the new number.
std::size_t WsConnection::add_messages(std::size_t count) {
  WsActivity& a = *activity_;
  while (count < WsActivity::pieces_max && has_messages()) {
    TopicMember& member = a.topics.front()->member;
    a.messages[count] = member.take();
    a.pieces[count] = a.messages[count].bytes();
    ++count;
    if (member.empty()) member.place().unlink();
  }
  return count;
}

std::size_t WsConnection::deliver(TopicMember& member,
                                  std::span<const TopicFrameRef> messages) noexcept {
  if (!may_send()) return 0;
  std::size_t sent = 0;
  std::size_t partial = 0;
  if (activity_ == nullptr && stream_->tls() == nullptr) {
    std::array<Bytes, WsActivity::pieces_max> pieces;
    std::ranges::transform(messages, pieces.begin(), &TopicFrameRef::bytes);
    auto written = stream_->try_write(std::span<const Bytes>(pieces).first(messages.size()));
    partial = written.value_or(0);  // an error comes again
    for (; sent < messages.size() && partial >= messages[sent].bytes().size(); ++sent) {
      partial -= messages[sent].bytes().size();
    }
    if (sent == messages.size()) return sent;
  }
  guard([&] {
    WsActivity& a = activate();
    if (partial != 0) {
      const Bytes rest = messages[sent++].bytes().subspan(partial);
      a.output.make_room(rest.size());
      std::memcpy(a.output.room().data(), rest.data(), rest.size());
      a.output.commit(rest.size());
    }
    for (; sent < messages.size() && may_send(); ++sent) {
      if (member.full()) pump_output();
      if (a.topics.empty() && !a.writing) a.progress_since = loop().now();
      member.add(messages[sent]);
      if (!member.empty() && !member.place().linked()) a.topics.push_back(member.place());
    }
    pump_output();
  });
  return sent;
}

}  // namespace weir::http
