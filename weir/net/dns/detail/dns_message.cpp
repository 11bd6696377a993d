#include "weir/net/dns/detail/dns_message.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>

namespace weir::dns {
namespace {

constexpr std::size_t header_bytes = 12;
constexpr std::uint16_t class_internet = 1;
constexpr std::uint16_t type_cname = 5;
constexpr std::uint16_t type_soa = 6;
constexpr unsigned aliases_max = 16;

unsigned byte_at(Bytes message, std::size_t at) noexcept {
  return std::to_integer<unsigned>(message[at]);
}

std::uint16_t word_at(Bytes message, std::size_t at) noexcept {
  return static_cast<std::uint16_t>(byte_at(message, at) << 8 | byte_at(message, at + 1));
}

unsigned flags_of(Bytes message) noexcept {
  return word_at(message, 2);
}

ResponseCode code_of(Bytes message) noexcept {
  return static_cast<ResponseCode>(flags_of(message) & 0xf);
}

unsigned lowered(std::byte each) noexcept {
  const auto value = std::to_integer<unsigned>(each);
  return value >= 'A' && value <= 'Z' ? value - 'A' + 'a' : value;
}

/// Compares encoded names without regard to case (RFC 4343). Lengths of labels are below 64, so
/// that lowering does not change them.
bool same_name(Bytes left, Bytes right) noexcept {
  return std::ranges::equal(left, right, {}, lowered, lowered);
}

struct Record {
  std::string owner;  // encoded as by Reader::name()
  std::uint16_t type;
  std::uint16_t record_class;
  Duration lifetime;
  std::size_t data;
  std::size_t data_bytes;

  bool is(std::uint16_t its_type, std::string_view name) const noexcept {
    return type == its_type && record_class == class_internet && owner == name;
  }
};

/// Reads a message sequentially. It is broken after malformed data, and then returns zeros.
class Reader {
 public:
  Reader(Bytes message, std::size_t at) noexcept : message_(message), at_(at) {}

  bool broken() const noexcept { return broken_; }
  std::size_t at() const noexcept { return at_; }

  void skip(std::size_t bytes) noexcept {
    if (broken_ || bytes > message_.size() - at_) {
      broken_ = true;
    } else {
      at_ += bytes;
    }
  }
  std::uint32_t number(std::size_t bytes) noexcept {
    const std::size_t begin = at_;
    skip(bytes);  // does not move if the message is broken, so that the value is then zero
    std::uint32_t value = 0;
    for (std::size_t each = begin; each < at_; ++each) value = value << 8 | byte_at(message_, each);
    return value;
  }
  std::uint16_t word() noexcept { return static_cast<std::uint16_t>(number(2)); }
  /// Reads a TTL. A value of more than 31 bits counts as zero (RFC 2181 §8).
  Duration lifetime() noexcept {
    const std::uint32_t seconds = number(4);
    return std::chrono::seconds(seconds > INT32_MAX ? 0U : seconds);
  }

  /// Reads a name and removes the compression. The result has labels in lower case, each after its
  /// length.
  std::string name() {
    std::string name;
    std::size_t place = at_;
    std::size_t bound = at_;  // pointers only lead backwards, so they end (RFC 1035 §4.1.4)
    bool followed = false;
    // A name has at most 127 labels, and no server needs more pointers than labels.
    constexpr unsigned pointers_max = 127;
    unsigned pointers = 0;
    while (!broken_) {
      if (place >= message_.size()) break;
      const unsigned length = byte_at(message_, place);
      if (length >= 0xc0) {
        if (place + 1 >= message_.size()) break;
        if (!followed) at_ = place + 2;
        followed = true;
        place = word_at(message_, place) & 0x3fffu;
        if (place >= bound || ++pointers > pointers_max) break;
        bound = place;
        continue;
      }
      constexpr unsigned label_bytes_max = 63;
      constexpr std::size_t name_bytes_max = 255;
      if (length > label_bytes_max || name.size() + 1 + length > name_bytes_max) break;
      if (length >= message_.size() - place) break;
      for (const std::byte each : message_.subspan(place, 1 + length)) {
        name.push_back(static_cast<char>(lowered(each)));
      }
      place += 1 + length;
      if (length > 0) continue;
      if (!followed) at_ = place;
      return name;
    }
    broken_ = true;
    return {};
  }

  Record record() {
    Record record;
    record.owner = name();
    record.type = word();
    record.record_class = word();
    record.lifetime = lifetime();
    record.data_bytes = word();
    record.data = at_;
    skip(record.data_bytes);
    return record;
  }

 private:
  Bytes message_;
  std::size_t at_;
  bool broken_ = false;
};

/// Returns the time for which the absence of a record may be cached (RFC 2308 §5); nullopt: not
/// given.
std::optional<Duration> negative_lifetime(Bytes message, Reader authority, unsigned count) {
  for (unsigned each = 0; each < count; ++each) {
    const Record record = authority.record();
    if (authority.broken()) break;
    if (record.type != type_soa || record.record_class != class_internet) continue;
    Reader data(message, record.data);
    static_cast<void>(data.name());
    static_cast<void>(data.name());
    constexpr std::size_t numbers_before_minimum = 4;
    data.skip(4 * numbers_before_minimum);
    const Duration minimum = data.lifetime();
    if (data.broken() || data.at() != record.data + record.data_bytes) break;
    return std::min(record.lifetime, minimum);
  }
  return std::nullopt;
}

Endpoint address_in(Bytes data) noexcept {
  if (data.size() == 4) {
    std::array<std::uint8_t, 4> bytes;
    std::memcpy(bytes.data(), data.data(), bytes.size());
    return Endpoint::ipv4(bytes, 0);
  }
  std::array<std::uint8_t, 16> bytes;
  std::memcpy(bytes.data(), data.data(), bytes.size());
  return Endpoint::ipv6(bytes, 0);
}

/// Adds the addresses of `owner` to `answer`. Returns true if they are well formed.
bool take_addresses(Bytes message, const std::vector<Record>& records, std::string_view owner,
                    RecordType type, std::size_t addresses_max, Response& answer) {
  const std::size_t bytes = type == RecordType::a ? 4 : 16;
  for (const Record& record : records) {
    if (!record.is(static_cast<std::uint16_t>(type), owner)) continue;
    if (record.data_bytes != bytes) return false;
    answer.lifetime = std::min(answer.lifetime.value_or(record.lifetime), record.lifetime);
    if (answer.addresses.size() == addresses_max) continue;
    answer.addresses.push_back(address_in(message.subspan(record.data, bytes)));
  }
  return true;
}

}  // namespace

void Query::put(std::uint16_t value) noexcept {
  bytes_[size_++] = static_cast<std::byte>(value >> 8);
  bytes_[size_++] = static_cast<std::byte>(value & 0xff);
}

Query::Query(std::string_view name, RecordType type, std::uint16_t id) noexcept : type_(type) {
  assert(!name.empty() && name.size() + 2 <= name_bytes_max);
  constexpr std::uint16_t recursion_desired = 0x0100;
  put(id);
  put(recursion_desired);
  put(1);  // one question
  for (int others = 0; others < 3; ++others) put(0);
  std::size_t length_at = size_++;
  for (const char each : name) {
    if (each != '.') {
      bytes_[size_++] = static_cast<std::byte>(each);
      continue;
    }
    bytes_[length_at] = static_cast<std::byte>(size_ - length_at - 1);
    length_at = size_++;
  }
  bytes_[length_at] = static_cast<std::byte>(size_ - length_at - 1);
  bytes_[size_++] = std::byte{0};
  put(static_cast<std::uint16_t>(type));
  put(class_internet);
}

Bytes Query::name() const noexcept {
  return bytes().subspan(header_bytes, size_ - header_bytes - tail_bytes);
}

bool is_response_to(Bytes message, const Query& query) noexcept {
  constexpr unsigned response = 0x8000;
  constexpr unsigned operation = 0x7800;
  if (message.size() < header_bytes) return false;
  if (word_at(message, 0) != word_at(query.bytes(), 0)) return false;
  if ((flags_of(message) & (response | operation)) != response) return false;
  const unsigned questions = word_at(message, 4);
  if (questions == 0) {
    const ResponseCode code = code_of(message);
    return code != ResponseCode::no_error && code != ResponseCode::no_such_name;
  }
  const std::size_t size = query.bytes().size();
  return questions == 1 && message.size() >= size &&
         same_name(message.subspan(header_bytes, size - header_bytes),
                   query.bytes().subspan(header_bytes));
}

Result<Response> parse_response(Bytes message, const Query& query, std::size_t addresses_max) {
  assert(is_response_to(message, query));
  Response answer;
  answer.code = code_of(message);
  constexpr unsigned truncated = 0x0200;
  answer.truncated = (flags_of(message) & truncated) != 0;
  const bool conclusive =
      answer.code == ResponseCode::no_error || answer.code == ResponseCode::no_such_name;
  if (answer.truncated || !conclusive) return answer;

  Reader reader(message, query.bytes().size());
  std::vector<Record> records;
  for (unsigned left = word_at(message, 6); left > 0; --left) {
    records.push_back(reader.record());
    if (reader.broken()) return fail(Errc::bad_input);
  }
  std::string owner;
  for (const std::byte each : query.name()) owner.push_back(static_cast<char>(lowered(each)));
  for (unsigned aliases = 0;; ++aliases) {
    if (!take_addresses(message, records, owner, query.type(), addresses_max, answer)) {
      return fail(Errc::bad_input);
    }
    if (!answer.addresses.empty()) break;
    const auto alias = std::ranges::find_if(
        records, [&](const Record& each) { return each.is(type_cname, owner); });
    if (alias == records.end()) break;
    if (aliases == aliases_max) return fail(Errc::bad_input);
    Reader data(message, alias->data);
    owner = data.name();
    if (data.broken() || data.at() != alias->data + alias->data_bytes) return fail(Errc::bad_input);
    answer.lifetime = std::min(answer.lifetime.value_or(alias->lifetime), alias->lifetime);
  }
  if (answer.code == ResponseCode::no_such_name) answer.addresses.clear();
  if (answer.addresses.empty()) {
    answer.lifetime = negative_lifetime(message, reader, word_at(message, 8));
  }
  return answer;
}

}  // namespace weir::dns
