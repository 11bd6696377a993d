// A raw client of HTTP/2 for tests: it writes requests as frames, and describes what it receives.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/detail/h2/hpack_decoder.hpp"
#include "weir/http/detail/h2/hpack_encoder.hpp"
#include "weir/http/detail/h2/session.hpp"
#include "weir/http/message/headers.hpp"
#include "weir/http/test/h2_frames.hpp"

namespace weir::http::frames {

/// Returns the preface, empty SETTINGS and the acknowledgement of those of the server.
inline std::string preface(std::string_view entries = {}) {
  return std::string(H2Session::client_preface) + settings(entries) +
         frame(FrameType::settings, FrameFlag::ack, 0);
}

inline std::string block(std::initializer_list<HeaderField> fields) {
  std::string out;
  for (const HeaderField& each : fields) {
    std::string room(hpack_field_size_max(each.name, each.value), '\0');
    out.append(room.data(), write_hpack_field(each.name, each.value, room.data()));
  }
  return out;
}

inline std::string request(std::uint32_t stream, std::string_view method, std::string_view path,
                           std::uint8_t flags = FrameFlag::end_headers | FrameFlag::end_stream) {
  return headers(
      stream,
      block(
          {{":method", method}, {":scheme", "http"}, {":path", path}, {":authority", "weir.test"}}),
      flags);
}
inline std::string get(std::uint32_t stream, std::string_view path) {
  return request(stream, "GET", path);
}
inline std::string post(std::uint32_t stream, std::string_view path) {
  return request(stream, "POST", path, FrameFlag::end_headers);
}

/// Describes received frames, one line for each. Field blocks are decoded; `date` is left out.
class Receiver {
 public:
  std::string read(std::string_view input) {
    std::string lines;
    Bytes rest = to_bytes(input);
    for (;;) {
      const FrameEvent event = reader_.next(rest);
      rest = rest.subspan(event.consumed);
      if (event.kind == FrameEvent::Kind::need_more) break;
      if (event.kind == FrameEvent::Kind::block) {
        EXPECT_TRUE(event.first && event.last);
        lines += "head " + std::to_string(event.stream) + fields(event.bytes);
        if ((event.flags & FrameFlag::end_stream) != 0) lines += " end";
        lines += "\n";
        continue;
      }
      if (event.kind == FrameEvent::Kind::data) {
        if (event.first) lines += "data " + std::to_string(event.stream) + " ";
        lines += to_text(event.bytes);
        if (!event.last) continue;
        if ((event.flags & FrameFlag::end_stream) != 0) lines += " end";
        lines += "\n";
        continue;
      }
      lines += describe(event, {}) + "\n";
      if (event.kind == FrameEvent::Kind::connection_error) break;
    }
    return lines;
  }

 private:
  std::string fields(Bytes bytes) {
    std::vector<char> scratch(HpackDecoder::scratch_size(65'536));
    HpackDecoder decoder(table_, bytes, 65'536, scratch);
    std::string out;
    for (;;) {
      const HpackDecoder::Step step = decoder.next();
      EXPECT_NE(step, HpackDecoder::Step::error);
      if (step != HpackDecoder::Step::field) return out;
      const auto& field = decoder.field();
      if (field.name == "date") continue;
      out.append(" ").append(field.name).append("=").append(field.value);
    }
  }

  FrameReader reader_;
  HpackTable table_;
};

}  // namespace weir::http::frames
