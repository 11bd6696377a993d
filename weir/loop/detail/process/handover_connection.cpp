// Encoding and decoding of the messages of a hot restart.
#include "weir/loop/detail/process/handover_connection.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string_view>
#include <utility>

namespace weir::loop {

HandoverConnection::~HandoverConnection() {
  ::explicit_bzero(message_.state.data(), message_.state.size());
}

std::string HandoverConnection::take_state() {
  std::string state = message_.state;
  ::explicit_bzero(message_.state.data(), message_.state.size());
  message_.state.clear();
  return state;
}

HandoverConnection::ReceiveResult HandoverConnection::receive_uninterrupted(Instant until) {
  ReceiveResult received = ReceiveResult::interrupted;
  while (received == ReceiveResult::interrupted) received = receive(until);
  return received;
}

void HandoverConnection::reject(std::string_view why) {
  // A process that does not read it finds the closed connection later.
  static_cast<void>(send({.kind = HandoverMessage::Kind::reject, .text = handover_text(why)}));
}

std::string describe(HandoverConnection::ReceiveResult received, const HandoverMessage& message) {
  using ReceiveResult = HandoverConnection::ReceiveResult;
  switch (received) {
    case ReceiveResult::message:
      if (message.kind == HandoverMessage::Kind::reject) return "rejected: " + message.text;
      return "unexpected message";
    case ReceiveResult::timed_out:
      return "no answer in time";
    case ReceiveResult::closed:
      return "connection closed";
    case ReceiveResult::version_mismatch:
      return "other protocol version";
    case ReceiveResult::invalid:
    case ReceiveResult::interrupted:
      break;
  }
  return "invalid message or missing descriptors";
}

namespace {

constexpr std::string_view magic = "WEIR";

using Kind = HandoverMessage::Kind;

bool printable(char each) noexcept {
  return each >= ' ' && each <= '~';
}

bool has_text(Kind kind) noexcept {
  return kind == Kind::request || kind == Kind::reject;
}

class Writer {
 public:
  void byte(std::uint8_t value) { bytes_.push_back(static_cast<std::byte>(value)); }
  void number(std::size_t value) {
    byte(static_cast<std::uint8_t>(value & 0xff));
    byte(static_cast<std::uint8_t>(value >> 8 & 0xff));
  }
  void raw(std::string_view text) {
    const Bytes bytes = to_bytes(text);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void text(std::string_view text) {
    assert(text.size() <= HandoverMessage::text_bytes_max);
    number(text.size());
    raw(text);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads fields from the front; every read fails after the first missing byte.
class Reader {
 public:
  explicit Reader(Bytes bytes) noexcept : rest_(bytes) {}

  bool failed() const noexcept { return failed_; }
  bool at_the_end() const noexcept { return rest_.empty(); }

  std::string_view raw(std::size_t size) {
    if (size > rest_.size()) {
      failed_ = true;
      return {};
    }
    const std::string_view text = to_text(rest_.first(size));
    rest_ = rest_.subspan(size);
    return text;
  }
  std::uint8_t byte() {
    const std::string_view one = raw(1);
    return one.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(one.front());
  }
  std::size_t number() {
    const std::size_t low = byte();
    return low | std::size_t{byte()} << 8;
  }
  bool flag() {
    const std::uint8_t value = byte();
    if (value > 1) failed_ = true;
    return value == 1;
  }
  std::string text() {
    const std::size_t size = number();
    if (size > HandoverMessage::text_bytes_max) failed_ = true;
    const std::string_view found = failed_ ? std::string_view() : raw(size);
    if (!std::ranges::all_of(found, printable)) failed_ = true;
    return std::string(found);
  }

 private:
  Bytes rest_;
  bool failed_ = false;
};

HandoverMessage::Socket read_socket(Reader& reader, bool& known) {
  HandoverMessage::Socket socket;
  const std::uint8_t use = reader.byte();
  known = known && (use == static_cast<std::uint8_t>(HandoverMessage::Use::listening) ||
                    use == static_cast<std::uint8_t>(HandoverMessage::Use::rendezvous));
  socket.use = static_cast<HandoverMessage::Use>(use);
  socket.externally_owned = reader.flag();
  socket.address = reader.text();
  return socket;
}

}  // namespace

std::string handover_text(std::string_view text) {
  std::string fit(text.substr(0, HandoverMessage::text_bytes_max));
  std::ranges::replace_if(fit, [](char each) { return !printable(each); }, '?');
  return fit;
}

std::vector<std::byte> encode(const HandoverMessage& message) {
  Writer writer;
  writer.raw(magic);
  writer.byte(HandoverMessage::version);
  writer.byte(static_cast<std::uint8_t>(message.kind));
  if (has_text(message.kind)) writer.text(message.text);
  if (message.kind == Kind::offer) {
    writer.byte(message.last ? 1 : 0);
    writer.number(message.sockets.size());
    for (const HandoverMessage::Socket& each : message.sockets) {
      writer.byte(static_cast<std::uint8_t>(each.use));
      writer.byte(each.externally_owned ? 1 : 0);
      writer.text(each.address);
    }
    writer.number(message.state.size());
    writer.raw(message.state);
  }
  return writer.take();
}

Result<HandoverMessage> decode_handover(Bytes packet) {
  Reader reader(packet);
  if (reader.raw(magic.size()) != magic) return fail(Errc::bad_input);
  const std::uint8_t version = reader.byte();
  if (reader.failed()) return fail(Errc::bad_input);
  if (version != HandoverMessage::version) return fail(Errc::unsupported);
  const std::uint8_t kind = reader.byte();
  bool known = kind >= static_cast<std::uint8_t>(Kind::request) &&
               kind <= static_cast<std::uint8_t>(Kind::received);
  if (!known) return fail(Errc::bad_input);
  HandoverMessage message;
  message.kind = static_cast<Kind>(kind);
  if (has_text(message.kind)) message.text = reader.text();
  if (message.kind == Kind::offer) {
    message.last = reader.flag();
    const std::size_t count = reader.number();
    for (std::size_t index = 0; index < count && !reader.failed(); ++index) {
      message.sockets.push_back(read_socket(reader, known));
    }
    const std::size_t size = reader.number();
    if (size > HandoverMessage::state_bytes_max) known = false;
    if (known) message.state = reader.raw(size);
  }
  if (!known || reader.failed() || !reader.at_the_end()) return fail(Errc::bad_input);
  return message;
}

}  // namespace weir::loop
