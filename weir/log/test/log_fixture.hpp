// A sink that stores the records in memory. Included by tests.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/log/log_service.hpp"

namespace weir {

/// A record as text, with its core, level and logger.
struct StoredRecord {
  unsigned core = LogRecord::no_core;
  LogLevel level = LogLevel::info;
  std::string logger;
  std::string text;  ///< The message and the fields.
};

/// The stored records.
/// Lifetime: outlives the LogService that writes to it.
struct StoredLog {
  std::vector<StoredRecord> records;
  std::size_t flushes = 0;

  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const StoredRecord& each : records) texts.push_back(each.logger + ": " + each.text);
    return texts;
  }
};

class MemorySink : public LogSink {
 public:
  explicit MemorySink(StoredLog& stored) noexcept : stored_(stored) {}
  void write(const LogRecord& record) override {
    StoredRecord& added = stored_.records.emplace_back();
    added.core = record.core;
    added.level = record.level;
    added.logger = record.logger;
    append_message(added.text, record);
  }
  void flush() override { ++stored_.flushes; }

 private:
  StoredLog& stored_;
};

template <class Sink, class... Args>
std::vector<std::unique_ptr<LogSink>> one_sink(Args&&... args) {
  std::vector<std::unique_ptr<LogSink>> sinks;
  sinks.push_back(std::make_unique<Sink>(std::forward<Args>(args)...));
  return sinks;
}

}  // namespace weir
