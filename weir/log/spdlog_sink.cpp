// Passes log records to a sink of spdlog.
#include "weir/log/spdlog_sink.hpp"

#include <spdlog/details/log_msg.h>
#include <spdlog/sinks/sink.h>

#include <chrono>
#include <string>
#include <utility>

namespace weir {
namespace {

spdlog::level::level_enum level_of(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::trace:
      return spdlog::level::trace;
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

spdlog::string_view_t view(std::string_view text) noexcept {
  return {text.data(), text.size()};
}

class SpdlogSink final : public LogSink {
 public:
  SpdlogSink(std::shared_ptr<spdlog::sinks::sink> sink, LogFormat format) noexcept
      : sink_(std::move(sink)), format_(format) {}

  void write(const LogRecord& record) override {
    const auto level = level_of(record.level);
    if (!sink_->should_log(level)) return;
    text_.clear();
    if (format_ == LogFormat::json) {
      append_line(text_, record, format_);
    } else {
      append_message(text_, record);
    }
    const auto time = std::chrono::time_point_cast<spdlog::log_clock::duration>(record.time);
    sink_->log(spdlog::details::log_msg(time, spdlog::source_loc(), view(record.logger), level,
                                        view(text_)));
  }
  void flush() override { sink_->flush(); }

 private:
  std::shared_ptr<spdlog::sinks::sink> sink_;
  LogFormat format_;
  std::string text_;
};

}  // namespace

std::unique_ptr<LogSink> spdlog_sink(std::shared_ptr<spdlog::sinks::sink> sink, LogFormat format) {
  return std::make_unique<SpdlogSink>(std::move(sink), format);
}

}  // namespace weir
