// A name server for tests, which answers as it is told to: rightly, late, wrongly, in parts or
// never. Included by tests only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/net/listen/listener.hpp"
#include "weir/net/resolver.hpp"
#include "weir/net/udp.hpp"
#include "weir/task/mutex.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"

namespace weir::names {

/// Writes a message of the domain name system.
class DnsWriter {
 public:
  std::vector<std::byte> bytes;

  DnsWriter& word(unsigned value) {
    byte(value >> 8);
    return byte(value);
  }
  DnsWriter& number(std::uint32_t value) { return word(value >> 16).word(value & 0xffff); }
  DnsWriter& byte(unsigned value) {
    bytes.push_back(static_cast<std::byte>(value & 0xff));
    return *this;
  }
  DnsWriter& raw(Bytes more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return *this;
  }
  DnsWriter& name(std::string_view text) {
    while (!text.empty()) {
      const std::string_view label = text.substr(0, text.find('.'));
      byte(static_cast<unsigned>(label.size())).raw(to_bytes(label));
      text.remove_prefix(std::min(text.size(), label.size() + 1));
    }
    return byte(0);
  }
  /// A place where a name stands already.
  DnsWriter& pointer(std::size_t place) { return word(0xc000U | static_cast<unsigned>(place)); }
  /// What follows the owner of a record and precedes its data.
  DnsWriter& record(unsigned type, std::uint32_t ttl, std::size_t data_bytes) {
    return word(type).word(1).number(ttl).word(static_cast<unsigned>(data_bytes));
  }
  DnsWriter& address(const Endpoint& address) {
    const auto* const data = static_cast<const std::byte*>(address.data());
    const bool ipv4 = address.family() == os::AddressFamily::ipv4;
    return raw({data + (ipv4 ? 4 : 8), ipv4 ? 4U : 16U});  // where a sockaddr has it
  }
};

inline Endpoint ip(std::string_view text) {
  return parse_ip_address(text, 0).value();
}

/// What the server says of a name.
struct NameRule {
  enum class Manner : std::uint8_t {
    rightly,
    never,
    with_wrong_id,
    with_wrong_question,
    as_a_question,     // without the bit that makes it an answer
    with_garbage,      // a few bytes
    malformed,         // an answer that ends within an address
    truncated,         // as a datagram; by a connection rightly
    cut_by_connection  // truncated, and its connection ends within the answer
  };
  std::vector<Endpoint> addresses = {};
  Manner manner = Manner::rightly;
  Duration delay = {};
  bool lies_first = false;  ///< before it sends this, it sends all kinds of what is no answer
  unsigned code = 0;        ///< of the response
  std::uint32_t ttl = 60;
  std::string alias = {};                          ///< the name is one for this
  std::optional<std::uint32_t> negative_ttl = {};  ///< of what is not there
};

/// Both its sockets are on one port, of loopback and chosen by the kernel unless told. It notes
/// what it is asked as "www.example.org AAAA", with " by connection" behind it where it was.
/// Threads: its loop's.
class NameServer {
 public:
  using Manner = NameRule::Manner;

  /// By name, or by name and type as it is noted, which comes first. What is not here is not there.
  std::map<std::string, NameRule> rules;
  std::vector<std::string> asked;

  std::size_t times_asked(const std::string& question) const {
    return static_cast<std::size_t>(std::count(asked.begin(), asked.end(), question));
  }

  /// On `endpoint`; a port that is 0 is chosen.
  Task<> open(Endpoint endpoint = Endpoint::loopback(0)) {
    for (int tries = 0; tries < 100 && listener_ == std::nullopt; ++tries) {
      auto socket = co_await udp::bind(endpoint, datagrams_);
      ListenOptions alone;
      alone.reuse_port = false;
      auto listener = co_await tcp::listen(socket.value().local_address(), alone);
      if (!listener) continue;  // that port is another's
      socket_.emplace(std::move(*socket));
      listener_.emplace(std::move(*listener));
    }
    EXPECT_TRUE(listener_);
  }
  Endpoint address() const { return socket_->local_address(); }

  /// Answers until it is cancelled.
  Task<> serve(Scope& scope) {
    scope.spawn(serve_connections(scope));
    for (;;) {
      auto datagram = co_await socket_->receive();
      if (!datagram && datagram.error() == Errc::cancelled) co_return;
      if (datagram) scope.spawn(answer_datagram(std::move(*datagram)));
    }
  }
  void close() {
    socket_.reset();
    listener_.reset();
  }

 private:
  static constexpr std::size_t header_bytes = 12;
  static constexpr udp::Options datagrams_{.ends_with_drain = false};

  struct Question {
    std::string name;
    unsigned type = 0;
    std::string noted;
    std::vector<std::byte> bytes;  // as it was sent: header and question

    bool wants(const Endpoint& each) const {
      return (each.family() == os::AddressFamily::ipv4) == (type == 1);
    }
  };

  static Question read(Bytes message) {
    Question question;
    std::size_t at = header_bytes;
    for (;;) {
      const auto length = std::to_integer<std::size_t>(message[at++]);
      if (length == 0) break;
      if (!question.name.empty()) question.name += '.';
      question.name += to_text(message.subspan(at, length));
      at += length;
    }
    question.type = std::to_integer<unsigned>(message[at + 1]);
    question.noted = question.name + (question.type == 1 ? " A" : " AAAA");
    question.bytes.assign(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(at + 4));
    return question;
  }

  NameRule rule_for(const Question& question) const {
    for (const std::string& key : {question.noted, question.name}) {
      if (const auto found = rules.find(key); found != rules.end()) return found->second;
    }
    NameRule missing;
    missing.code = 3;
    return missing;
  }

  /// The answer, and all that is wrong with it.
  static std::vector<std::byte> message_for(const Question& question, const NameRule& rule,
                                            Manner manner) {
    if (manner == Manner::with_garbage) return {question.bytes.begin(), question.bytes.begin() + 7};
    std::vector<Endpoint> addresses;
    for (const Endpoint& each : rule.addresses) {
      if (question.wants(each)) addresses.push_back(each);
    }
    const bool cut = manner == Manner::truncated;
    if (cut) addresses.clear();
    const bool aliased = !rule.alias.empty() && !cut;
    const bool negative = addresses.empty() && rule.negative_ttl && !cut;
    DnsWriter message;
    message.raw({question.bytes.data(), 2});
    message.word((manner == Manner::as_a_question ? 0x0100U : 0x8180U) | (cut ? 0x0200U : 0U) |
                 rule.code);
    message.word(1).word(static_cast<unsigned>(addresses.size()) + (aliased ? 1 : 0));
    message.word(negative ? 1 : 0).word(0);
    message.raw(Bytes(question.bytes).subspan(header_bytes));
    std::size_t owner = header_bytes;
    if (aliased) {
      message.pointer(owner).record(5, rule.ttl, rule.alias.size() + 2);
      owner = message.bytes.size();
      message.name(rule.alias);
    }
    for (const Endpoint& each : addresses) {
      const bool ipv4 = each.family() == os::AddressFamily::ipv4;
      message.pointer(owner).record(ipv4 ? 1 : 28, rule.ttl, ipv4 ? 4 : 16).address(each);
    }
    if (negative) {
      message.pointer(header_bytes).record(6, 3600, 22).byte(0).byte(0);
      for (int numbers = 0; numbers < 4; ++numbers) message.number(1);
      message.number(*rule.negative_ttl);
    }
    if (manner == Manner::with_wrong_id) message.bytes[1] ^= std::byte{1};
    if (manner == Manner::with_wrong_question) message.bytes[header_bytes + 1] ^= std::byte{2};
    if (manner == Manner::malformed) message.bytes.resize(message.bytes.size() - 2);
    return std::move(message.bytes);
  }

  Task<> send(std::vector<std::byte> message, Endpoint peer) {
    const auto alone = co_await sending_.lock();
    if (alone) static_cast<void>(co_await socket_->send(Bytes(message), peer));
  }

  Task<> answer_datagram(udp::Datagram datagram) {
    const Question question = read(datagram.buffer);
    datagram.buffer = Buffer();
    asked.push_back(question.noted);
    const NameRule rule = rule_for(question);
    if (rule.lies_first) {
      static constexpr std::array lies{Manner::with_wrong_id, Manner::with_wrong_question,
                                       Manner::as_a_question, Manner::with_garbage};
      for (const Manner lie : lies) {
        co_await send(message_for(question, rule, lie), datagram.peer);
      }
    }
    if (rule.delay > Duration::zero()) {
      const auto slept = co_await sleep(rule.delay);
      if (!slept) co_return;
    }
    if (rule.manner == Manner::never) co_return;
    const bool connecting = rule.manner == Manner::cut_by_connection;
    const Manner manner = connecting ? Manner::truncated : rule.manner;
    co_await send(message_for(question, rule, manner), datagram.peer);
  }

  Task<> serve_connections(Scope& scope) {
    for (;;) {
      auto stream = co_await listener_->accept();
      if (!stream) co_return;
      scope.spawn(answer_connection(std::move(*stream)));
    }
  }
  Task<> answer_connection(tcp::Stream stream) {
    std::string heard;
    while (heard.size() < 2 ||
           heard.size() < 2 + static_cast<std::size_t>(static_cast<unsigned char>(heard[1]))) {
      const auto some = co_await stream.read();
      if (!some) co_return;
      heard += some->text();
    }
    const Question question = read(to_bytes(heard).subspan(2));
    asked.push_back(question.noted + " by connection");
    const NameRule rule = rule_for(question);
    const Manner manner = rule.manner == Manner::truncated ? Manner::rightly : rule.manner;
    const auto message = message_for(question, rule, manner);
    DnsWriter framed;
    framed.word(static_cast<unsigned>(message.size())).raw(message);
    if (rule.manner == Manner::cut_by_connection) framed.bytes.resize(framed.bytes.size() - 3);
    static_cast<void>(co_await stream.write(Bytes(framed.bytes)));
    // The other closes first: what it has not read yet is not lost to a reset.
    if (rule.manner == Manner::cut_by_connection) static_cast<void>(stream.finish_writing());
    static_cast<void>(co_await stream.read());
  }

  std::optional<udp::Socket> socket_;
  std::optional<tcp::Listener> listener_;
  CoreMutex sending_;
};

/// Options that know nothing of this machine: no file, and these servers alone. No time that a test
/// could take by accident is too long.
inline ResolverOptions only(std::vector<Endpoint> servers) {
  ResolverOptions options;
  options.hosts_file.clear();
  options.resolv_conf.clear();
  options.servers = std::move(servers);
  options.attempts = 1;
  options.timeout = options.negative_ttl_max = options.failure_ttl = std::chrono::hours(1);
  return options;
}

/// Runs `body()` while the server answers on `endpoint`.
template <class Body>
Task<> with_name_server(NameServer& server, Body body, Endpoint endpoint = Endpoint::loopback(0)) {
  co_await server.open(endpoint);
  const auto serving = [&](Scope& scope) -> Task<Result<>> {
    scope.spawn(server.serve(scope));
    co_await body();
    scope.cancel();
    co_return {};
  };
  const auto served = co_await with_scope(OnFailure::supervise, serving);
  EXPECT_TRUE(served);
  server.close();
}

}  // namespace weir::names
