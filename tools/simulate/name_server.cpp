// The messages of a simulated name server, correct and wrong ones.
#include "tools/simulate/name_server.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>

#include "weir/loop/loop.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/task/sleep.hpp"

namespace weir::simulate {
namespace {

constexpr std::size_t header_bytes = 12;
constexpr unsigned type_a = 1;
constexpr unsigned type_ns = 2;
constexpr unsigned type_cname = 5;
constexpr unsigned type_soa = 6;
constexpr unsigned type_txt = 16;
constexpr unsigned type_aaaa = 28;
constexpr unsigned class_internet = 1;
constexpr unsigned class_chaos = 3;
constexpr unsigned response = 0x8180;
constexpr unsigned truncated = 0x0200;

unsigned type_of(dns::Family family) {
  return family == dns::Family::ipv4 ? type_a : type_aaaa;
}

std::vector<std::byte> data_of(const Endpoint& address) {
  const auto* const bytes = static_cast<const std::byte*>(address.data());
  const bool ipv4 = address.family() == os::AddressFamily::ipv4;
  const std::byte* const begin = bytes + (ipv4 ? 4 : 8);  // offset in a sockaddr
  return {begin, begin + (ipv4 ? 4 : 16)};
}

/// One record of an answer. Its data is either `bytes`, or the name `target` and then `bytes`.
struct OutgoingRecord {
  std::string owner;
  unsigned type;
  unsigned record_class;
  std::uint32_t ttl;
  std::string target = {};
  std::vector<std::byte> bytes = {};
};

/// Writes a message. The random numbers decide about compression and the case of letters.
class MessageWriter {
 public:
  explicit MessageWriter(sim::Random& random) : random_(random) {}

  void byte(unsigned value) { bytes_.push_back(static_cast<std::byte>(value & 0xff)); }
  void word(unsigned value) {
    byte(value >> 8);
    byte(value);
  }
  void number(std::uint32_t value) {
    word(value >> 16);
    word(value & 0xffff);
  }
  void raw(Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void name(std::string_view text) {
    while (!text.empty()) {
      const auto known = places_.find(text);
      if (known != places_.end() && random_.bernoulli(0.7)) {
        word(0xc000U | known->second);
        return;
      }
      if (bytes_.size() < 0x4000) places_.emplace(text, static_cast<unsigned>(bytes_.size()));
      const std::string_view label = text.substr(0, text.find('.'));
      byte(static_cast<unsigned>(label.size()));
      for (const char each : label) byte(static_cast<unsigned char>(in_any_case(each)));
      text.remove_prefix(std::min(text.size(), label.size() + 1));
    }
    byte(0);
  }
  void record(const OutgoingRecord& record) {
    name(record.owner);
    word(record.type);
    word(record.record_class);
    number(record.ttl);
    const std::size_t size_at = bytes_.size();
    word(0);
    if (!record.target.empty()) name(record.target);
    raw(record.bytes);
    const std::size_t size = bytes_.size() - size_at - 2;
    bytes_[size_at] = static_cast<std::byte>(size >> 8);
    bytes_[size_at + 1] = static_cast<std::byte>(size & 0xff);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  char in_any_case(char each) {
    const bool upper = random_.bernoulli(0.3);
    return upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(each))) : each;
  }

  sim::Random& random_;
  std::vector<std::byte> bytes_;
  std::map<std::string, unsigned, std::less<>> places_;  // offset of each name
};

/// Returns a record that a client must ignore: of another type, class or owner.
OutgoingRecord draw_noise(sim::Random& random, const std::string& owner, dns::Family family) {
  const bool ipv4 = family == dns::Family::ipv4;
  const dns::Family other = ipv4 ? dns::Family::ipv6 : dns::Family::ipv4;
  const auto address = [&](dns::Family of) { return data_of(unused_address(of, 60001)); };
  switch (random.below(4)) {
    case 0:
      return {owner, type_of(other), class_internet, 0, {}, address(other)};
    case 1:
      return {owner, type_of(family), class_chaos, 0, {}, address(family)};
    case 2:
      return {"else.example", type_of(family), class_internet, 0, {}, address(family)};
    default:
      return {owner, type_txt, class_internet, 0, {}, {std::byte{1}, std::byte{'x'}}};
  }
}

/// Returns the records of a correct answer section; its addresses keep their order.
std::vector<OutgoingRecord> answer_section(const ZoneName& entry, const std::string& name,
                                           dns::Family family, sim::Random& random) {
  std::vector<OutgoingRecord> records;
  const std::string& owner = entry.aliases.empty() ? name : entry.aliases.back().target;
  for (const ZoneAddress& each : entry.addresses[index_of(family)]) {
    records.push_back(
        {owner, type_of(family), class_internet, each.ttl, {}, data_of(each.address)});
  }
  const auto insert = [&](OutgoingRecord record) {
    const auto at = static_cast<std::ptrdiff_t>(random.below(records.size() + 1));
    records.insert(records.begin() + at, std::move(record));
  };
  // An owner with addresses needs no alias.
  if (!records.empty() && random.bernoulli(0.2)) {
    insert({owner, type_cname, class_internet, 0, "else.example"});
  }
  std::string before = name;
  for (const ZoneAlias& alias : entry.aliases) {
    insert({before, type_cname, class_internet, alias.ttl, alias.target});
    before = alias.target;
  }
  for (std::size_t left = random.below(4); left > 0; --left) {
    insert(draw_noise(random, owner, family));
  }
  return records;
}

/// Returns the records of the authority section; an SOA record, if given, is the last one.
std::vector<OutgoingRecord> authority_section(const std::optional<ZoneAbsence>& absence,
                                              sim::Random& random) {
  std::vector<OutgoingRecord> records;
  if (random.bernoulli(0.3)) {
    records.push_back({"example", type_ns, class_internet, 0, "ns.example"});
  }
  if (!absence) return records;
  const auto soa = [&](unsigned record_class, const ZoneAbsence& of) {
    MessageWriter numbers(random);
    numbers.byte(0);  // the name of the mailbox
    for (std::uint32_t each = 1; each <= 4; ++each) numbers.number(each);
    numbers.number(of.minimum);
    records.push_back({"example", type_soa, record_class, of.ttl, "ns.example", numbers.take()});
  };
  if (random.bernoulli(0.2)) soa(class_chaos, {0, 0});
  soa(class_internet, *absence);
  return records;
}

/// Returns a datagram that does not answer the query, for each `kind` from 0.
std::vector<std::byte> stray(Bytes query, std::size_t kind) {
  std::vector<std::byte> bytes(query.begin(), query.end());
  bytes[2] = std::byte{0x81};
  bytes[3] = std::byte{0x80};
  switch (kind) {
    case 0:
      bytes[0] ^= std::byte{1};  // another id
      break;
    case 1:
      bytes[1] ^= std::byte{1};
      break;
    case 2:
      bytes[header_bytes + 1] ^= std::byte{1};  // another name
      break;
    case 3:
      bytes[bytes.size() - 3] ^= std::byte{2};  // another type
      break;
    case 4:
      bytes[2] = std::byte{0x01};  // a query
      break;
    case 5:
      bytes[2] = std::byte{0xa1};  // another operation
      break;
    case 6:
      bytes.resize(header_bytes - 1);
      break;
    case 7:
      bytes[5] = std::byte{0};  // no question, although the code is no error
      break;
    case 8:
      bytes[5] = std::byte{2};  // two questions
      break;
    case 9:
      bytes[3] = std::byte{0x83};  // no question, although the code is no such name
      bytes[5] = std::byte{0};
      break;
    default:
      bytes.resize(bytes.size() - 1);  // a part of the question
      break;
  }
  return bytes;
}
constexpr std::size_t stray_kinds = 11;

}  // namespace

NameServer::Query NameServer::parse(Bytes message) {
  Query query;
  std::size_t at = header_bytes;
  for (;;) {
    const auto length = std::to_integer<std::size_t>(message[at++]);
    if (length == 0) break;
    if (!query.name.empty()) query.name += '.';
    query.name += to_text(message.subspan(at, length));
    at += length;
  }
  const bool ipv4 = std::to_integer<unsigned>(message[at + 1]) == type_a;
  query.family = ipv4 ? dns::Family::ipv4 : dns::Family::ipv6;
  query.bytes.assign(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(at + 4));
  return query;
}

AnswerMode NameServer::mode_of(const Query& query) const {
  return zone_.find(query.name).modes[number_];
}

void NameServer::record(const Query& query, std::string_view transport) {
  log_.push_back(std::to_string(number_) + " " + query.name +
                 (query.family == dns::Family::ipv4 ? " A" : " AAAA") + std::string(transport));
}

/// Returns the message for one of the modes correct, truncated, malformed, refused and failed.
std::vector<std::byte> NameServer::answer(const Query& query, AnswerMode mode,
                                          sim::Random& random) const {
  const ZoneName& entry = zone_.find(query.name);
  const bool is_error = mode == AnswerMode::refused || mode == AnswerMode::failed;
  unsigned code = entry.exists || mode == AnswerMode::malformed ? 0 : 3;
  if (mode == AnswerMode::refused) code = random.bernoulli(0.5) ? 5 : 4;
  if (mode == AnswerMode::failed) code = random.bernoulli(0.5) ? 2 : 1;
  const bool has_question = !is_error || random.bernoulli(0.5);
  std::vector<OutgoingRecord> answers;
  std::vector<OutgoingRecord> authority;
  if (mode == AnswerMode::correct) {
    answers = answer_section(entry, query.name, query.family, random);
    authority = authority_section(entry.absence, random);
  }
  const std::size_t malformed_kind = random.below(3);
  if (mode == AnswerMode::malformed && malformed_kind == 0) {
    answers.push_back({query.name, type_cname, class_internet, 9, query.name});  // a loop
  } else if (mode == AnswerMode::malformed && malformed_kind == 1) {
    std::vector<std::byte> data = data_of(unused_address(query.family, 1));
    data.resize(data.size() + 1 - 2 * random.below(2));  // one byte too many, or too few
    answers.push_back({query.name, type_of(query.family), class_internet, 9, {}, data});
  }
  const bool promises_more = mode == AnswerMode::malformed && malformed_kind == 2;
  MessageWriter writer(random);
  writer.raw(Bytes(query.bytes).first(2));
  writer.word(response | code | (mode == AnswerMode::truncated ? truncated : 0U));
  writer.word(has_question ? 1 : 0);
  writer.word(static_cast<unsigned>(answers.size()) + (promises_more ? 1 : 0));
  writer.word(static_cast<unsigned>(authority.size()));
  writer.word(0);
  if (has_question) {
    writer.name(query.name);
    writer.word(type_of(query.family));
    writer.word(class_internet);
  }
  for (const OutgoingRecord& each : answers) writer.record(each);
  for (const OutgoingRecord& each : authority) writer.record(each);
  return writer.take();
}

Task<> NameServer::send(std::vector<std::byte> message, Endpoint peer) {
  const auto alone = co_await sending_.lock();
  if (alone) std::ignore = co_await socket_->send(Bytes(message), peer);
}

Task<> NameServer::answer_datagram(loop::PlatformClock& clock, Query query, Endpoint peer) {
  record(query, "");
  sim::Random random(clock.random());
  const AnswerMode mode = mode_of(query);
  if (mode == AnswerMode::strays || random.bernoulli(0.2)) {
    for (std::size_t left = 1 + random.below(4); left > 0; --left) {
      co_await send(stray(query.bytes, random.below(stray_kinds)), peer);
    }
  }
  const Duration delay = zone_.find(query.name).delay[index_of(query.family)];
  if (delay > Duration::zero()) {
    const auto slept = co_await sleep(delay);
    if (!slept) co_return;
  }
  if (mode == AnswerMode::silent || mode == AnswerMode::strays) co_return;
  const bool needs_tcp = mode == AnswerMode::truncated || mode >= AnswerMode::tcp_cut;
  const AnswerMode over_udp = needs_tcp ? AnswerMode::truncated : mode;
  co_await send(answer(query, over_udp, random), peer);
}

Task<> NameServer::answer_connection(loop::PlatformClock& clock, tcp::Stream stream) {
  std::string received;
  const auto byte = [&](std::size_t at) {
    return std::size_t{static_cast<unsigned char>(received[at])};
  };
  while (received.size() < 2 || received.size() < 2 + (byte(0) << 8) + byte(1)) {
    const auto some = co_await stream.read();
    if (!some) co_return;
    received += some->text();
  }
  const Query query = parse(to_bytes(received).subspan(2));
  record(query, " TCP");
  sim::Random random(clock.random());
  const AnswerMode mode = mode_of(query);
  if (mode == AnswerMode::tcp_closed) co_return;
  const bool again = mode == AnswerMode::tcp_truncated;
  std::vector<std::byte> message =
      answer(query, again ? AnswerMode::truncated : AnswerMode::correct, random);
  if (mode == AnswerMode::tcp_wrong) message[1] ^= std::byte{1};
  std::vector<std::byte> framed{static_cast<std::byte>(message.size() >> 8),
                                static_cast<std::byte>(message.size() & 0xff)};
  framed.insert(framed.end(), message.begin(), message.end());
  if (mode == AnswerMode::tcp_cut) framed.resize(framed.size() - 1 - random.below(message.size()));
  std::ignore = co_await stream.write(Bytes(framed));
  // The client closes first, so that a reset does not discard bytes that it has not read yet.
  if (mode == AnswerMode::tcp_cut) static_cast<void>(stream.finish_writing());
  std::ignore = co_await stream.read();
}

Task<Result<>> NameServer::serve_connections(Scope& scope) {
  WEIR_CO_TRY(auto listener, co_await tcp::listen(Endpoint::any(53)));
  for (;;) {
    auto stream = co_await listener.accept();
    if (!stream) co_return {};
    scope.spawn(answer_connection(scope.loop().platform(), std::move(*stream)));
  }
}

Task<Result<>> NameServer::run(Scope&) {
  WEIR_CO_TRY(auto socket, co_await udp::bind(Endpoint::any(53)));
  socket_ = &socket;
  const auto serve = [this](Scope& inner) -> Task<Result<>> {
    inner.spawn(serve_connections(inner));
    for (;;) {
      auto datagram = co_await socket_->receive();
      if (!datagram && datagram.error() == Errc::closed) break;
      // The port of an earlier query may be closed by now.
      if (!datagram && datagram.error().category() == std::system_category()) continue;
      if (!datagram) co_return fail(datagram.error());
      Query query = parse(datagram->buffer);
      const Endpoint peer = datagram->peer;
      datagram->buffer = Buffer();
      inner.spawn(answer_datagram(inner.loop().platform(), std::move(query), peer));
    }
    inner.cancel();
    co_return {};
  };
  const auto served = co_await with_scope(OnFailure::isolate, serve);
  if (!served && served.error() != Errc::cancelled) co_return served;
  co_return {};
}

}  // namespace weir::simulate
