// Adapts a sink of spdlog, so that users can keep their sinks. A program that uses this header
// includes and links spdlog; other programs do not need spdlog. A build of Weir without spdlog has
// no spdlog_sink(): a program that calls it does not compile.
#pragma once

#include <memory>

#include "weir/log/sink.hpp"

namespace spdlog::sinks {
class sink;
}

namespace weir {

/// Returns a sink that passes each record to `sink` as a spdlog message with time, level, logger
/// and text. The text is the message with its fields, or the whole record in JSON. The pattern and
/// the level of `sink` apply too.
#ifdef WEIR_WITHOUT_SPDLOG
__attribute__((unavailable("this build of Weir has no spdlog_sink(): -DWEIR_SPDLOG=ON adds it")))
#endif
std::unique_ptr<LogSink>
spdlog_sink(std::shared_ptr<spdlog::sinks::sink> sink, LogFormat format = LogFormat::text);

}  // namespace weir
