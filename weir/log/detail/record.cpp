// Encodes and decodes log records.
#include "weir/log/detail/record.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <type_traits>

namespace weir {
namespace {

constexpr std::size_t name_bytes_max = 128;
constexpr std::size_t message_bytes_max = 1024;

struct Header {
  std::uint32_t size = 0;
  std::uint32_t core = 0;
  std::int64_t time = 0;
  LogLevel level = LogLevel::info;
  bool truncated = false;
  std::uint16_t logger_size = 0;
  std::uint16_t message_size = 0;
};
static_assert(sizeof(Header) == 24 && offsetof(Header, size) == 0);

struct FieldHeader {
  std::uint8_t kind = 0;  // the index in LogValue
  std::uint8_t key_size = 0;
  std::uint16_t value_size = 0;
};

constexpr std::size_t string_kind = 4;
static_assert(std::is_same_v<std::variant_alternative_t<string_kind, LogValue>, std::string_view>);

/// Returns the first `most` bytes, or fewer so that no UTF-8 character is cut in two.
std::string_view truncate_to(std::string_view text, std::size_t most) noexcept {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most);
}

template <class T>
T load(Bytes& bytes) noexcept {
  assert(bytes.size() >= sizeof(T));
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof value);
  return value;
}

std::string_view load_text(Bytes& bytes, std::size_t size) noexcept {
  assert(bytes.size() >= size);
  const std::string_view text = to_text(bytes.first(size));
  bytes = bytes.subspan(size);
  return text;
}

LogValue load_value(Bytes& bytes, const FieldHeader& header) noexcept {
  switch (header.kind) {
    case 0:
      return load<std::int64_t>(bytes);
    case 1:
      return load<std::uint64_t>(bytes);
    case 2:
      return load<double>(bytes);
    case 3:
      return load<bool>(bytes);
    default:
      return load_text(bytes, header.value_size);
  }
}

/// Returns the size of a value that is not a text.
std::size_t size_of(const LogValue& value) noexcept {
  return std::visit([](const auto& each) { return sizeof(each); }, value);
}

}  // namespace

LogRecordWriter::LogRecordWriter(WallTime time, LogLevel level, unsigned core,
                                 std::string_view logger, std::string_view message) noexcept {
  const std::string_view name = truncate_to(logger, name_bytes_max);
  const std::string_view text = truncate_to(message, message_bytes_max);
  truncated_ = text.size() < message.size();
  Header header;
  header.core = core;
  header.time = time.time_since_epoch().count();
  header.level = level;
  header.logger_size = static_cast<std::uint16_t>(name.size());
  header.message_size = static_cast<std::uint16_t>(text.size());
  append(&header, sizeof header);
  append(name.data(), name.size());
  append(text.data(), text.size());
}

void LogRecordWriter::append(const void* data, std::size_t size) noexcept {
  assert(size <= free_bytes());
  if (size == 0) return;
  std::memcpy(bytes_.data() + size_, data, size);
  size_ += size;
}

void LogRecordWriter::add(const LogField& field) noexcept {
  const std::string_view key = truncate_to(field.key, name_bytes_max);
  const std::size_t before_value = sizeof(FieldHeader) + key.size();
  const auto* const text = std::get_if<string_kind>(&field.value);
  const std::size_t least = before_value + (text == nullptr ? size_of(field.value) : 0);
  if (free_bytes() < least) {
    truncated_ = true;
    return;
  }
  std::string_view part;
  if (text != nullptr) {
    part = truncate_to(*text, free_bytes() - before_value);
    truncated_ = truncated_ || part.size() < text->size();
  }
  FieldHeader header;
  header.kind = static_cast<std::uint8_t>(field.value.index());
  header.key_size = static_cast<std::uint8_t>(key.size());
  header.value_size = static_cast<std::uint16_t>(part.size());
  append(&header, sizeof header);
  append(key.data(), key.size());
  if (text != nullptr) return append(part.data(), part.size());
  std::visit([this](const auto& each) { append(&each, sizeof each); }, field.value);
}

void LogRecordWriter::add_encoded(std::string_view fields) noexcept {
  if (free_bytes() < fields.size()) {
    truncated_ = true;
  } else {
    append(fields.data(), fields.size());
  }
}

Bytes LogRecordWriter::finish() noexcept {
  Header header;
  std::memcpy(&header, bytes_.data(), sizeof header);
  header.size = static_cast<std::uint32_t>(size_);
  header.truncated = truncated_;
  std::memcpy(bytes_.data(), &header, sizeof header);
  return Bytes(bytes_.data(), size_);
}

std::string LogRecordWriter::encode(std::string_view before, std::span<const LogField> fields) {
  // Half of a record; the other half is for the record's own fields.
  constexpr std::size_t most = LogRecord::bytes_max / 2;
  LogRecordWriter writer;
  writer.append(before.data(), before.size());
  for (const LogField& field : fields) {
    const std::size_t size = writer.size_;
    writer.add(field);
    if (writer.size_ <= most) continue;
    writer.size_ = size;
    break;
  }
  return std::string(to_text(Bytes(writer.bytes_.data(), writer.size_)));
}

bool has_log_field(std::string_view encoded, std::string_view key) noexcept {
  Bytes bytes = to_bytes(encoded);
  while (!bytes.empty()) {
    const auto field = load<FieldHeader>(bytes);
    if (load_text(bytes, field.key_size) == key) return true;
    load_value(bytes, field);
  }
  return false;
}

std::size_t log_record_size(Bytes beginning) noexcept {
  return load<std::uint32_t>(beginning);
}

WallTime log_record_time(Bytes record) noexcept {
  return WallTime(Duration(load<Header>(record).time));
}

void read_log_record(Bytes bytes, LogRecord& record) {
  const auto header = load<Header>(bytes);
  record.time = WallTime(Duration(header.time));
  record.level = header.level;
  record.core = header.core;
  record.truncated = header.truncated;
  record.logger = load_text(bytes, header.logger_size);
  record.message = load_text(bytes, header.message_size);
  record.fields.clear();
  while (!bytes.empty()) {
    const auto field = load<FieldHeader>(bytes);
    const std::string_view key = load_text(bytes, field.key_size);
    record.fields.emplace_back(key, load_value(bytes, field));
  }
}

}  // namespace weir
