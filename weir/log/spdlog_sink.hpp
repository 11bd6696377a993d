// Sinks of spdlog's, so that users keep theirs. Who makes one includes and links spdlog; for others
// it need not be there.
#pragma once

#include <memory>

#include "weir/app/log_sink.hpp"

namespace spdlog::sinks {
class sink;
}

namespace weir {

/// Passes each record on as a message of spdlog's with its time, level, logger and a text: message
/// and fields, or the whole record in JSON. The sink's own pattern makes a line of it, and its own
/// level counts too.
std::unique_ptr<LogSink> spdlog_sink(std::shared_ptr<spdlog::sinks::sink> sink,
                                     LogFormat format = LogFormat::text);

}  // namespace weir
