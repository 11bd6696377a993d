#include "tools/weir/check/tls_wire.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace weir::check {
namespace {

constexpr std::size_t header_size = 5;
constexpr std::size_t record_bytes_max = (std::size_t{16} << 10U) + 256;
constexpr std::size_t other_bytes_max = 200;

// SHA-256 of "HelloRetryRequest" (RFC 8446, 4.1.3), its first bytes.
constexpr std::string_view retry_random = "\xcf\x21\xad\x74\xe5\x9a\x61\x11";
constexpr std::string_view downgrade_random = "DOWNGRD\x01";

/// Takes numbers and texts from the front of a message. A message that is too short gives zeros.
class Reader {
 public:
  explicit Reader(std::string_view bytes) noexcept : bytes_(bytes) {}

  std::size_t number(unsigned size) {
    std::size_t value = 0;
    for (const char each : take(size)) value = value << 8U | static_cast<unsigned char>(each);
    return value;
  }
  std::string_view take(std::size_t size) {
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  bool empty() const noexcept { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

ServerHello to_server_hello(std::string_view body) {
  Reader reader(body);
  ServerHello hello;
  hello.version = static_cast<std::uint16_t>(reader.number(2));
  const std::string_view random = reader.take(32);
  hello.retry = random.starts_with(retry_random);
  hello.downgraded = random.ends_with(downgrade_random);
  reader.take(reader.number(1));  // session id
  hello.suite = static_cast<std::uint16_t>(reader.number(2));
  hello.compression = static_cast<std::uint8_t>(reader.number(1));
  reader.number(2);  // size of the extensions
  while (!reader.empty()) {
    const auto type = static_cast<ExtensionType>(reader.number(2));
    Reader content(reader.take(reader.number(2)));
    if (type == ExtensionType::supported_versions) {
      hello.version = static_cast<std::uint16_t>(content.number(2));
    }
    hello.extensions.push_back(type);
  }
  return hello;
}

bool is_record(std::string_view header) {
  const auto type = static_cast<unsigned char>(header.front());
  return type >= static_cast<std::uint8_t>(RecordType::change_cipher_spec) &&
         type <= static_cast<std::uint8_t>(RecordType::heartbeat) && header[1] == '\x03';
}

std::string version_name(std::uint16_t version) {
  if (version >= 0x0301 && version <= 0x0304) return "TLS 1." + std::to_string(version - 0x0301);
  return version == 0x0300 ? "SSL 3.0" : "an unknown version";
}

}  // namespace

bool ServerHello::has(ExtensionType type) const noexcept {
  return std::ranges::find(extensions, type) != extensions.end();
}

void ServerFlight::read(std::string_view bytes) {
  input_ += bytes;
  while (input_.size() >= header_size && other_.empty()) {
    Reader header(input_);
    const auto type = static_cast<RecordType>(header.number(1));
    header.number(2);
    const std::size_t size = header.number(2);
    if (!is_record(input_) || size > record_bytes_max) {
      other_ = input_.substr(0, other_bytes_max);
      return;
    }
    if (input_.size() < header_size + size) return;
    const std::string body = input_.substr(header_size, size);
    input_.erase(0, header_size + size);
    if (type == RecordType::alert && size == 2) alert_ = static_cast<std::uint8_t>(body[1]);
    if (type == RecordType::heartbeat) heartbeat_ = true;
    if (type == RecordType::handshake) read_handshake(body);
  }
}

void ServerFlight::read_handshake(std::string_view bytes) {
  messages_ += bytes;
  for (;;) {
    Reader header(messages_);
    const std::size_t type = header.number(1);
    const std::size_t size = header.number(3);
    if (messages_.size() < 4 + size || messages_.size() < 4) return;
    if (type == 2) hello_ = to_server_hello(std::string_view(messages_).substr(4, size));
    messages_.erase(0, 4 + size);
  }
}

Task<bool> TlsWire::open() {
  return connect(nullptr);
}

Task<> TlsWire::exchange(std::string_view bytes, Duration wait_timeout) {
  until_answered_ = true;
  return transfer(bytes, wait_timeout);
}

Task<bool> TlsWire::wait_for_close(Duration wait_timeout) {
  until_answered_ = false;
  co_await receive(wait_timeout);
  co_return is_closed();
}

void TlsWire::finish_writing() {
  if (!is_closed()) static_cast<void>(stream().finish_writing());
}

std::string TlsWire::describe() const {
  if (!trouble().empty()) return trouble();
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (const auto& hello = flight_.hello()) {
    std::array<char, 8> suite{};
    std::snprintf(suite.data(), suite.size(), "%04x", hello->suite);
    add((hello->retry ? "HelloRetryRequest of " : "ServerHello of ") +
        version_name(hello->version) + " with suite " + suite.data());
  }
  if (flight_.heartbeat()) add("a heartbeat");
  if (const auto alert = flight_.alert()) add("alert " + std::to_string(*alert));
  if (const std::string& other = flight_.other(); !other.empty()) {
    add("without TLS: " + other.substr(0, other.find('\r')));
  }
  if (text.empty()) return is_closed() ? "closed without an answer" : "no answer";
  return text + (is_closed() ? ", closed" : "");
}

}  // namespace weir::check
