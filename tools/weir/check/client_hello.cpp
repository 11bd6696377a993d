#include "tools/weir/check/client_hello.hpp"

#include <algorithm>
#include <utility>

namespace weir::check {

std::string number(std::uint64_t value, unsigned size) {
  std::string text;
  for (unsigned left = size; left > 0; --left) {
    text += static_cast<char>(value >> (8 * (left - 1)) & 0xffU);
  }
  return text;
}

std::string prefixed(std::string_view content, unsigned size) {
  return number(content.size(), size).append(content);
}

std::string list(const std::vector<std::uint16_t>& values, unsigned size) {
  std::string text;
  for (const std::uint16_t each : values) text += number(each, 2);
  return prefixed(text, size);
}

std::string record(RecordType type, std::string_view bytes) {
  return number(static_cast<std::uint8_t>(type), 1) + number(0x0303, 2) + prefixed(bytes, 2);
}

std::string fragments(RecordType type, std::string_view bytes, std::size_t size) {
  std::string text;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size()))) {
    text += record(type, bytes.substr(0, size));
  }
  return text;
}

std::string handshake_message(std::uint8_t type, std::string_view body) {
  return number(type, 1) + prefixed(body, 3);
}

ClientHello& ClientHello::set(ExtensionType type, std::string body) {
  const auto found = std::ranges::find(extensions, type, &Extension::type);
  if (found != extensions.end()) {
    found->body = std::move(body);
  } else {
    extensions.push_back({type, std::move(body)});
  }
  return *this;
}

ClientHello& ClientHello::remove(ExtensionType type) {
  std::erase_if(extensions, [type](const Extension& each) { return each.type == type; });
  return *this;
}

std::string ClientHello::message() const {
  std::string all;
  for (const Extension& each : extensions) {
    all += number(static_cast<std::uint16_t>(each.type), 2) + prefixed(each.body, 2);
  }
  all += behind_extensions;
  // The random need not be random: the client proves nothing by it.
  const std::string random(32, '\x5a');
  std::string body = number(version, 2) + random + prefixed(session_id, 1) + list(suites) +
                     prefixed(compressions, 1) + prefixed(all, 2) + behind;
  return handshake_message(1, body);
}

std::string ClientHello::in_record() const {
  return record(RecordType::handshake, message());
}

namespace {

constexpr std::uint16_t x25519 = 0x001d;
constexpr std::uint16_t secp256r1 = 0x0017;

bool is_name(std::string_view host) {
  const bool has_letter = std::ranges::any_of(
      host, [](char each) { return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z'); });
  return has_letter && !host.contains(':');
}

}  // namespace

ClientHello hello_of_1_2(const CheckTarget& target) {
  ClientHello hello;
  hello.suites = {0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8};  // ECDHE with AEADs
  if (is_name(target.host)) {
    hello.set(ExtensionType::server_name, prefixed(number(0, 1) + prefixed(target.host, 2), 2));
  }
  hello.set(ExtensionType::supported_groups, list({x25519, secp256r1}));
  hello.set(ExtensionType::point_formats, prefixed(std::string(1, '\0'), 1));
  hello.set(ExtensionType::signature_algorithms,
            list({0x0403, 0x0503, 0x0603, 0x0807, 0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601}));
  hello.set(ExtensionType::alpn, prefixed(prefixed("http/1.1", 1), 2));
  return hello;
}

ClientHello hello_of_1_3(const CheckTarget& target) {
  ClientHello hello = hello_of_1_2(target);
  hello.suites.insert(hello.suites.begin(), {0x1301, 0x1302, 0x1303});
  hello.session_id.assign(32, '\x11');
  hello.set(ExtensionType::supported_versions, list({0x0304, 0x0303}, 1));
  hello.set(ExtensionType::psk_modes, prefixed("\x01", 1));
  // The base point of X25519 is a valid key of a client that will never finish its handshake.
  const std::string base_point = "\x09" + std::string(31, '\0');
  hello.set(ExtensionType::key_share, prefixed(number(x25519, 2) + prefixed(base_point, 2), 2));
  return hello;
}

}  // namespace weir::check
