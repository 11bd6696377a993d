// A sink that keeps what it is given. Included by tests.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/log/log_service.hpp"

namespace weir {

/// A record as a text, and where it came from.
struct KeptRecord {
  unsigned core = LogRecord::no_core;
  LogLevel level = LogLevel::info;
  std::string logger;
  std::string text;  ///< message and fields
};

/// Outlives the Logs that writes to it.
struct Kept {
  std::vector<KeptRecord> records;
  std::size_t flushes = 0;

  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const KeptRecord& each : records) texts.push_back(each.logger + ": " + each.text);
    return texts;
  }
};

class KeepingSink : public LogSink {
 public:
  explicit KeepingSink(Kept& kept) noexcept : kept_(kept) {}
  void write(const LogRecord& record) override {
    KeptRecord& added = kept_.records.emplace_back();
    added.core = record.core;
    added.level = record.level;
    added.logger = record.logger;
    append_message(added.text, record);
  }
  void flush() override { ++kept_.flushes; }

 private:
  Kept& kept_;
};

template <class Sink, class... Args>
std::vector<std::unique_ptr<LogSink>> one_sink(Args&&... args) {
  std::vector<std::unique_ptr<LogSink>> sinks;
  sinks.push_back(std::make_unique<Sink>(std::forward<Args>(args)...));
  return sinks;
}

}  // namespace weir
