#include "weir/loop/handover_talk.hpp"

namespace weir {

HandoverTalk::Heard HandoverTalk::hear_undisturbed(Instant until) {
  Heard heard = Heard::interruption;
  while (heard == Heard::interruption) heard = hear(until);
  return heard;
}

void HandoverTalk::refuse(std::string_view why) {
  // Where it does not listen, it finds out by itself.
  static_cast<void>(say({.kind = HandoverMessage::Kind::refuse, .text = handover_text(why)}));
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
