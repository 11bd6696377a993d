// What an older and a newer process of a service say to each other while the newer one takes over:
// each message a packet. See handover.hpp for the conversation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weir/base/detail/bytes.hpp"
#include "weir/base/result.hpp"

namespace weir {

/// One message. Its bytes: "WEIR", a byte for the protocol's version, one for the kind, and what
/// the kind has; numbers are little-endian, texts are printable ASCII behind 16 bits of length.
struct HandoverMessage {
  static constexpr std::uint8_t version = 1;
  static constexpr std::size_t bytes_max = 64 * 1024;
  static constexpr std::size_t text_bytes_max = 255;

  enum class Kind : std::uint8_t {
    ask = 1,  ///< newer: for the sockets of the service called `text`
    offer,    ///< older: `sockets`, each with a descriptor; more offers follow unless `last`
    refuse,   ///< either: why not; the end of the conversation
    ready,    ///< newer: every socket is listened on, and waits for the word
    yours,    ///< older: it stops accepting, whatever comes
    stopped,  ///< older: it accepts nothing any more
  };

  enum class Use : std::uint8_t {
    listening = 1,  ///< a socket of the service
    meeting,        ///< where the next newer process will ask
  };
  struct Socket {
    Use use = Use::listening;
    bool held = false;    ///< somebody else keeps it open too, such as a service manager
    std::string address;  ///< where it listens, for people
    bool operator==(const Socket&) const = default;
  };

  Kind kind = Kind::ask;
  std::string text = {};  ///< ask, refuse
  std::vector<Socket> sockets = {};
  bool last = true;
  bool operator==(const HandoverMessage&) const = default;
};

/// A text as a message can carry it: cut, with `?` for what is not printable ASCII.
std::string handover_text(std::string_view text);

/// The bytes of a message whose texts are handover_text()s.
std::vector<std::byte> encode(const HandoverMessage& message);

/// Errors: Errc::unsupported for another version, Errc::bad_input for everything else.
Result<HandoverMessage> decode_handover(Bytes packet);

}  // namespace weir
