#include "weir/app/log_sink.hpp"

#include <string>

namespace weir {
namespace {

class HostLogSink final : public LogSink {
 public:
  HostLogSink(Host& host, LogFormat format) noexcept : host_(host), format_(format) {}

  void write(const LogRecord& record) override {
    line_.clear();
    append_line(line_, record, format_);
    host_.log(line_);
  }

 private:
  Host& host_;
  LogFormat format_;
  std::string line_;
};

}  // namespace

std::unique_ptr<LogSink> host_log_sink(Host& host, LogFormat format) {
  return std::make_unique<HostLogSink>(host, format);
}

}  // namespace weir
