// The transitions of a stream of HTTP/2, for tests of the parts of a session.
#pragma once

#include <cstdint>

#include "weir/http/detail/h2/stream.hpp"

namespace weir::http {

/// The transitions of a stream, which only the session makes.
struct H2StreamTest {
  static void begin(H2Stream& stream, std::uint32_t id = 1, std::uint32_t window = 100) {
    stream.begin(id, StreamWindows({.send = window, .receive = window, .receive_full = window}));
  }
  static void open(H2Stream& stream) { stream.open(); }
  static void end_remote(H2Stream& stream) { stream.end_remote(); }
  static void end_local(H2Stream& stream) { stream.end_local(); }
  static void close(H2Stream& stream, bool by_reset) { stream.close(by_reset); }
  static bool change_send(H2Stream& stream, std::int64_t change) {
    return stream.windows_.change_send(change);
  }
  static void release(H2Stream& stream) { stream.held_ = false; }
  static void set_facts(H2Stream& stream) { stream.final_head_ = stream.has_body_ = true; }
  static bool has_facts(const H2Stream& stream) { return stream.final_head_ || stream.has_body_; }
};

}  // namespace weir::http
