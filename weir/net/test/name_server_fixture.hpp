// A fake name server that answers according to rules: correctly, late, wrongly, partially or not at
// all. Library code does not include it.
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

#include "weir/net/dns/resolver.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/net/udp.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/sleep.hpp"
#include "weir/task/sync/mutex.hpp"

namespace weir::dns {

/// Writes a DNS message.
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
  /// Appends a compression pointer to a name at offset `place` of the message.
  DnsWriter& pointer(std::size_t place) { return word(0xc000U | static_cast<unsigned>(place)); }
  /// Appends the part of a record between its owner and its data.
  DnsWriter& record(unsigned type, std::uint32_t ttl, std::size_t data_bytes) {
    return word(type).word(1).number(ttl).word(static_cast<unsigned>(data_bytes));
  }
  DnsWriter& address(const Endpoint& address) {
    const auto* const data = static_cast<const std::byte*>(address.data());
    const bool ipv4 = address.family() == os::AddressFamily::ipv4;
    return raw({data + (ipv4 ? 4 : 8), ipv4 ? 4U : 16U});  // offset in a sockaddr
  }
};

inline Endpoint ip(std::string_view text) {
  return parse_ip_address(text, 0).value();
}

/// The server's response to queries for a name.
struct DnsRule {
  enum class Behavior : std::uint8_t {
    correct,
    never,
    with_wrong_id,
    with_wrong_question,
    as_a_question,  // missing response bit
    with_garbage,   // a few bytes
    malformed,      // response that ends within an address
    truncated,      // truncated over UDP and correct over TCP
    // The next ones are truncated over UDP, too. The TCP connection ends within the response, or
    // ends before it, or carries a response with a wrong id, a truncated one, none, or one byte in
    // each millisecond.
    cut_by_connection,
    closed_by_connection,
    wrong_by_connection,
    truncated_by_connection,
    silent_by_connection,
    slow_by_connection
  };
  std::vector<Endpoint> addresses = {};
  Behavior behavior = Behavior::correct;
  Duration delay = {};
  bool sends_invalid_first =
      false;          ///< true if the server sends all kinds of invalid responses first
  unsigned code = 0;  ///< response code
  std::uint32_t ttl = 60;
  std::string alias = {};                          ///< target if the name is an alias
  std::optional<std::uint32_t> negative_ttl = {};  ///< TTL of an absent name or address
};

/// A fake name server. Its UDP and TCP sockets have the same port, by default on loopback and
/// chosen by the kernel. It records each query as "www.example.org AAAA", with the suffix
/// " by connection" for TCP.
/// Threads: its loop's.
class FakeDnsServer {
 public:
  using Behavior = DnsRule::Behavior;

  /// The rules by name, or by name and type as recorded in `asked`, which take precedence. Names
  /// without a rule do not exist.
  std::map<std::string, DnsRule> rules;
  std::vector<std::string> asked;
  std::vector<unsigned> ids;  ///< ids of the queries over UDP

  std::size_t times_asked(const std::string& question) const {
    return static_cast<std::size_t>(std::count(asked.begin(), asked.end(), question));
  }

  /// Opens the sockets on `endpoint`. The kernel chooses a port for port 0. It chooses that of TCP,
  /// because thousands of TCP ports may be in TIME_WAIT, and a listen to one of them waits.
  Task<> open(Endpoint endpoint = Endpoint::loopback(0)) {
    for (int tries = 0; tries < 100 && listener_ == std::nullopt; ++tries) {
      ListenOptions alone;
      alone.reuse_port = false;
      auto listener = co_await tcp::listen(endpoint, alone);
      if (!listener) continue;
      auto socket = co_await udp::bind(listener->local_address(), datagrams_);
      if (!socket) continue;  // another process has this UDP port
      socket_.emplace(std::move(*socket));
      listener_.emplace(std::move(*listener));
    }
    EXPECT_TRUE(listener_);
  }
  Endpoint address() const { return socket_->local_address(); }

  /// Answers queries.
  /// Cancel: returns.
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
  static constexpr udp::Options datagrams_{.close_on_drain = false};

  struct Question {
    std::string name;
    unsigned type = 0;
    std::string logged;
    std::vector<std::byte> bytes;  // header and question as sent

    bool matches(const Endpoint& each) const {
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
    question.logged = question.name + (question.type == 1 ? " A" : " AAAA");
    question.bytes.assign(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(at + 4));
    return question;
  }

  DnsRule rule_for(const Question& question) const {
    for (const std::string& key : {question.logged, question.name}) {
      if (const auto found = rules.find(key); found != rules.end()) return found->second;
    }
    DnsRule missing;
    missing.code = 3;
    return missing;
  }

  /// Returns the response with the faults of `behavior`.
  static std::vector<std::byte> message_for(const Question& question, const DnsRule& rule,
                                            Behavior behavior) {
    if (behavior == Behavior::with_garbage)
      return {question.bytes.begin(), question.bytes.begin() + 7};
    std::vector<Endpoint> addresses;
    for (const Endpoint& each : rule.addresses) {
      if (question.matches(each)) addresses.push_back(each);
    }
    const bool cut = behavior == Behavior::truncated;
    if (cut) addresses.clear();
    const bool aliased = !rule.alias.empty() && !cut;
    const bool negative = addresses.empty() && rule.negative_ttl && !cut;
    DnsWriter message;
    message.raw({question.bytes.data(), 2});
    message.word((behavior == Behavior::as_a_question ? 0x0100U : 0x8180U) | (cut ? 0x0200U : 0U) |
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
    if (behavior == Behavior::with_wrong_id) message.bytes[1] ^= std::byte{1};
    if (behavior == Behavior::with_wrong_question) message.bytes[header_bytes + 1] ^= std::byte{2};
    if (behavior == Behavior::malformed) message.bytes.resize(message.bytes.size() - 2);
    return std::move(message.bytes);
  }

  Task<> send(std::vector<std::byte> message, Endpoint peer) {
    const auto alone = co_await sending_.lock();
    if (alone) std::ignore = co_await socket_->send(Bytes(message), peer);
  }

  Task<> answer_datagram(udp::Datagram datagram) {
    const Question question = read(datagram.buffer);
    datagram.buffer = Buffer();
    asked.push_back(question.logged);
    ids.push_back(std::to_integer<unsigned>(question.bytes[0]) << 8 |
                  std::to_integer<unsigned>(question.bytes[1]));
    const DnsRule rule = rule_for(question);
    if (rule.sends_invalid_first) {
      static constexpr std::array invalid{Behavior::with_wrong_id, Behavior::with_wrong_question,
                                          Behavior::as_a_question, Behavior::with_garbage};
      for (const Behavior each : invalid) {
        co_await send(message_for(question, rule, each), datagram.peer);
      }
    }
    if (rule.delay > Duration::zero()) {
      const auto slept = co_await sleep(rule.delay);
      if (!slept) co_return;
    }
    if (rule.behavior == Behavior::never) co_return;
    const bool connecting = rule.behavior >= Behavior::truncated;
    const Behavior behavior = connecting ? Behavior::truncated : rule.behavior;
    co_await send(message_for(question, rule, behavior), datagram.peer);
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
    const auto byte = [&](std::size_t at) {
      return std::size_t{static_cast<unsigned char>(heard[at])};
    };
    while (heard.size() < 2 || heard.size() < 2 + (byte(0) << 8) + byte(1)) {
      const auto some = co_await stream.read();
      if (!some) co_return;
      heard += some->text();
    }
    EXPECT_EQ(heard.size(), 2 + (byte(0) << 8) + byte(1)) << "the length precedes the query";
    const Question question = read(to_bytes(heard).subspan(2));
    asked.push_back(question.logged + " by connection");
    const DnsRule rule = rule_for(question);
    if (rule.behavior == Behavior::closed_by_connection) co_return;
    Behavior behavior = Behavior::correct;
    if (rule.behavior == Behavior::wrong_by_connection) behavior = Behavior::with_wrong_id;
    if (rule.behavior == Behavior::truncated_by_connection) behavior = Behavior::truncated;
    const auto message = message_for(question, rule, behavior);
    DnsWriter framed;
    framed.word(static_cast<unsigned>(message.size())).raw(message);
    if (rule.behavior == Behavior::cut_by_connection) framed.bytes.resize(framed.bytes.size() - 3);
    if (rule.behavior == Behavior::silent_by_connection) framed.bytes.clear();
    const std::size_t most =
        rule.behavior == Behavior::slow_by_connection ? 1 : framed.bytes.size();
    for (std::size_t sent = 0; sent < framed.bytes.size(); sent += most) {
      if (sent > 0) std::ignore = co_await sleep(std::chrono::milliseconds(1));
      const Bytes piece = Bytes(framed.bytes).subspan(sent, most);
      std::ignore = co_await stream.write(piece);
    }
    // The client closes first, so that a reset does not discard bytes that it has not read yet.
    if (rule.behavior == Behavior::cut_by_connection) static_cast<void>(stream.finish_writing());
    std::ignore = co_await stream.read();
  }

  std::optional<udp::Socket> socket_;
  std::optional<tcp::Listener> listener_;
  Mutex sending_;
};

/// Returns options that use these servers and no file of this machine. The timeout and the TTLs are
/// longer than any test.
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
Task<> with_name_server(FakeDnsServer& server, Body body,
                        Endpoint endpoint = Endpoint::loopback(0)) {
  co_await server.open(endpoint);
  const auto serving = [&](Scope& scope) -> Task<Result<>> {
    scope.spawn(server.serve(scope));
    co_await body();
    scope.cancel();
    co_return {};
  };
  const auto served = co_await with_scope(OnFailure::isolate, serving);
  EXPECT_TRUE(served);
  server.close();
}

}  // namespace weir::dns
