// Formats log records as text and JSON.
#include "weir/log/sink.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/json/detail/writer.hpp"

namespace weir {
namespace {

class PlatformLogSink final : public LogSink {
 public:
  PlatformLogSink(loop::PlatformLog& platform, LogFormat format) noexcept
      : platform_(platform), format_(format) {}

  void write(const LogRecord& record) override {
    line_.clear();
    append_line(line_, record, format_);
    platform_.log(line_);
  }

 private:
  loop::PlatformLog& platform_;
  LogFormat format_;
  std::string line_;
};

}  // namespace

std::unique_ptr<LogSink> platform_log_sink(loop::PlatformLog& platform, LogFormat format) {
  return std::make_unique<PlatformLogSink>(platform, format);
}

namespace {

constexpr std::string_view truncated_key = "truncated";

bool is_word(std::string_view text) noexcept {
  const auto plain = [](char each) {
    return each > ' ' && each <= '~' && each != '"' && each != '\\' && each != '=';
  };
  return !text.empty() && std::ranges::all_of(text, plain);
}

/// Appends the number or truth value as in JSON.
template <class T>
void append_json(std::string& out, T value) {
  json::StringWriter writer(out);
  writer.write(value);
  writer.finish();
}

/// Appends the text as in JSON, with escapes for all control characters.
void append_json(std::string& out, std::string_view text) {
  json::append_printable(out, text);
}

/// Appends the text with JSON's escapes, without the quotes.
void append_escaped(std::string& out, std::string_view text) {
  const std::size_t start = out.size();
  append_json(out, text);
  out.erase(start, 1);
  out.pop_back();
}

void append_word(std::string& out, std::string_view text) {
  if (is_word(text)) {
    out += text;
  } else {
    append_json(out, text);
  }
}

void append_field(std::string& out, std::string_view key, const LogValue& value) {
  out += ' ';
  append_word(out, key);
  out += '=';
  if (const auto* const text = std::get_if<std::string_view>(&value)) {
    append_word(out, *text);
  } else {
    std::visit([&out](const auto& each) { append_json(out, each); }, value);
  }
}

bool is_reserved(std::string_view key) noexcept {
  constexpr std::array<std::string_view, 6> reserved{"time", "level",   "logger",
                                                     "core", "message", truncated_key};
  return std::ranges::find(reserved, key) != reserved.end();
}

bool have_unique_names(std::span<const LogField> fields) noexcept {
  for (std::size_t index = 0; index < fields.size(); ++index) {
    const std::string_view key = fields[index].key;
    const auto before = fields.first(index);
    if (is_reserved(key) || std::ranges::find(before, key, &LogField::key) != before.end())
      return false;
  }
  return true;
}

/// Returns a unique JSON name for each field.
std::vector<std::string> unique_names(std::span<const LogField> fields) {
  std::vector<std::string> names;
  names.reserve(fields.size());
  for (const LogField& field : fields) {
    std::string name(field.key);
    while (is_reserved(name) || std::ranges::find(names, name) != names.end()) name += '_';
    names.push_back(std::move(name));
  }
  return names;
}

void append_object(std::string& out, const LogRecord& record) {
  out += "{\"time\":\"";
  append_time(out, record.time);
  out.append("\",\"level\":\"").append(name_of(record.level)).append("\",\"logger\":");
  append_json(out, record.logger);
  if (record.core != LogRecord::no_core) {
    out += ",\"core\":";
    append_json(out, record.core);
  }
  out += ",\"message\":";
  append_json(out, record.message);
  std::vector<std::string> names;  // empty if the keys are unique
  if (!have_unique_names(record.fields)) names = unique_names(record.fields);
  for (std::size_t index = 0; index < record.fields.size(); ++index) {
    out += ',';
    append_json(out, names.empty() ? record.fields[index].key : std::string_view(names[index]));
    out += ':';
    std::visit([&out](const auto& each) { append_json(out, each); }, record.fields[index].value);
  }
  out += record.truncated ? ",\"truncated\":true}" : "}";
}

}  // namespace

void append_time(std::string& out, WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::microseconds>(time - day));
  std::array<char, 64> text;
  const int size = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ",
      static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
      static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
      static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()),
      static_cast<int>(clock.subseconds().count()));
  out.append(text.data(), static_cast<std::size_t>(size));
}

void append_message(std::string& out, const LogRecord& record) {
  append_escaped(out, record.message);
  for (const LogField& field : record.fields) append_field(out, field.key, field.value);
  if (record.truncated) append_field(out, truncated_key, true);
}

void append_line(std::string& out, const LogRecord& record, LogFormat format) {
  if (format == LogFormat::json) return append_object(out, record);
  append_time(out, record.time);
  out.append(" ").append(name_of(record.level)).append(" [");
  if (record.core == LogRecord::no_core) {
    out += '-';
  } else {
    out += std::to_string(record.core);
  }
  out += "] ";
  append_escaped(out, record.logger);
  out += ": ";
  append_message(out, record);
}

}  // namespace weir
