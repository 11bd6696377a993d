// One log record: as bytes between the core that wrote it and the thread that writes it out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/app/log_level.hpp"
#include "weir/base/detail/bytes.hpp"
#include "weir/base/time.hpp"

namespace weir {

using LogValue = std::variant<std::int64_t, std::uint64_t, double, bool, std::string_view>;

struct LogField {
  LogField(std::string_view its_key, LogValue its_value) noexcept
      : key(its_key), value(its_value) {}
  std::string_view key;
  LogValue value;
};

/// What a sink is given; the views are valid during the call.
struct LogRecord {
  static constexpr unsigned no_core = ~0U;

  WallTime time;
  LogLevel level = LogLevel::info;
  unsigned core = no_core;  ///< no_core: it was written outside of every loop
  bool cut = false;         ///< some of it did not fit into bytes_max
  std::string_view logger;
  std::string_view message;
  std::vector<LogField> fields;

  /// What a record may take with all that is in it; the rest is cut.
  static constexpr std::size_t bytes_max = 4096;
};

/// Gathers the bytes of a record. What does not fit is cut: texts end earlier, fields are left out.
/// Threads: one. It is large: for the stack of a function, not for a coroutine's frame.
class LogRecordWriter {
 public:
  LogRecordWriter(WallTime time, LogLevel level, unsigned core, std::string_view logger,
                  std::string_view message) noexcept;
  void add(const LogField& field) noexcept;
  /// What fields_of() has given.
  void add_encoded(std::string_view fields) noexcept;
  /// The bytes; nothing may be added afterwards.
  Bytes finish() noexcept;

  /// The bytes of some fields behind those of others, to be added to any number of records.
  static std::string encoded(std::string_view before, std::span<const LogField> fields);

 private:
  LogRecordWriter() noexcept = default;
  std::size_t room() const noexcept { return bytes_.size() - size_; }
  void put(const void* data, std::size_t size) noexcept;

  std::size_t size_ = 0;
  bool cut_ = false;
  std::array<std::byte, LogRecord::bytes_max> bytes_;  // as far as size_
};

/// Whether the bytes of some fields have one of that name.
bool has_log_field(std::string_view encoded, std::string_view key) noexcept;

/// How many bytes a record has that begins with these; there are at least log_size_bytes.
inline constexpr std::size_t log_size_bytes = sizeof(std::uint32_t);
std::size_t log_record_size(Bytes beginning) noexcept;
/// When it was written.
WallTime log_record_time(Bytes record) noexcept;

/// Makes `record` views of the bytes of one; its memory is used again.
void read_log_record(Bytes bytes, LogRecord& record);

}  // namespace weir
