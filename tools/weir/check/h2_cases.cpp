#include "tools/weir/check/h2_cases.hpp"

#include <algorithm>

#include "tools/weir/check/h2_requests.hpp"

namespace weir::check {
namespace {

using http::FrameFlag;
using http::FrameType;
using http::H2Error;
using Fields = std::vector<H2Field>;
using Target = CheckTarget;

/// Returns HEADERS of stream 1 that end it.
std::string request(const Fields& fields) {
  return h2_frame(FrameType::headers, h2_whole, 1, h2_block(fields));
}

std::string get(const Target& target, const Fields& more = {}) {
  Fields fields = h2_get_fields(target);
  fields.insert(fields.end(), more.begin(), more.end());
  return request(fields);
}

std::string get_without(const Target& target, std::string_view name) {
  Fields fields = h2_get_fields(target);
  std::erase_if(fields, [name](const H2Field& each) { return each.name == name; });
  return request(fields);
}

std::string get_with(const Target& target, std::string_view name, std::string_view value) {
  Fields fields = h2_get_fields(target);
  for (H2Field& each : fields) {
    if (each.name == name) each.value = value;
  }
  return request(fields);
}

/// Returns a GET whose block ends with these bytes.
std::string get_and_bytes(const Target& target, std::string_view bytes) {
  return h2_frame(FrameType::headers, h2_whole, 1, h2_block(h2_get_fields(target)).append(bytes));
}

/// Returns the head of a POST on stream 1, which stays open.
std::string post(const Target& target, const Fields& more = {}) {
  return h2_post(target, 1, more);
}

std::vector<H2Case> field_cases() {
  return {
      {"get", "a GET", [](const Target& target) { return get(target); }, H2Wanted::served},
      {"fields-upper-case", "a name in upper case",
       [](const Target& target) { return get(target, {{"X-Test", "v"}}); }},
      {"fields-name-space", "a space in a name",
       [](const Target& target) { return get(target, {{"x test", "v"}}); }},
      {"fields-name-colon", "a colon in a name",
       [](const Target& target) { return get(target, {{"x:test", "v"}}); }},
      {"fields-name-line-end", "a line end in a name",
       [](const Target& target) { return get(target, {{"x\r\ntest", "v"}}); }},
      {"fields-empty-name", "an empty name",
       [](const Target& target) { return get(target, {{"", "v"}}); }},
      {"fields-line-end", "a second field in a value",
       [](const Target& target) { return get(target, {{"x", "v\r\ny: z"}}); }},
      {"fields-nul", "NUL in a value",
       [](const Target& target) { return get(target, {{"x", std::string("v\0w", 3)}}); }},
      {"fields-space-before", "white space before a value",
       [](const Target& target) { return get(target, {{"x", " v"}}); }},
      {"fields-connection", "Connection",
       [](const Target& target) { return get(target, {{"connection", "close"}}); }},
      {"fields-keep-alive", "Keep-Alive",
       [](const Target& target) { return get(target, {{"keep-alive", "1"}}); }},
      {"fields-upgrade", "Upgrade",
       [](const Target& target) { return get(target, {{"upgrade", "websocket"}}); }},
      {"fields-transfer-encoding", "Transfer-Encoding",
       [](const Target& target) { return get(target, {{"transfer-encoding", "chunked"}}); }},
      {"fields-te", "TE with a coding",
       [](const Target& target) { return get(target, {{"te", "gzip"}}); }},
      {"fields-te-trailers", "TE with trailers only, as gRPC sends it",
       [](const Target& target) { return get(target, {{"te", "trailers"}}); }, H2Wanted::served},
      {"fields-host", "another Host than :authority",
       [](const Target& target) { return get(target, {{"host", "other.test"}}); }},
  };
}

std::vector<H2Case> pseudo_cases() {
  return {
      {"pseudo-late", ":path after other fields",
       [](const Target& target) {
         Fields fields = h2_get_fields(target);
         fields.insert(fields.begin() + 3, {"x", "v"});
         return request(fields);
       }},
      {"pseudo-unknown", "an unknown pseudo-header field",
       [](const Target& target) {
         Fields fields = h2_get_fields(target);
         fields.insert(fields.begin(), {":test", "v"});
         return request(fields);
       }},
      {"pseudo-status", ":status in a request",
       [](const Target& target) {
         Fields fields = h2_get_fields(target);
         fields.insert(fields.begin(), {":status", "200"});
         return request(fields);
       }},
      {"pseudo-no-method", "no :method",
       [](const Target& target) { return get_without(target, ":method"); }},
      {"pseudo-no-scheme", "no :scheme",
       [](const Target& target) { return get_without(target, ":scheme"); }},
      {"pseudo-no-path", "no :path",
       [](const Target& target) { return get_without(target, ":path"); }},
      {"pseudo-empty-path", "an empty :path",
       [](const Target& target) { return get_with(target, ":path", ""); }},
      {"pseudo-path-line", "a request line in :path",
       [](const Target& target) {
         return get_with(target, ":path", "/ HTTP/1.1\r\nHost: other.test\r\n\r\nGET /");
       }},
      {"pseudo-method-line", "a request line in :method",
       [](const Target& target) { return get_with(target, ":method", "GET / HTTP/1.1\r\nX:"); }},
      {"pseudo-path-repeated", "two :path",
       [](const Target& target) {
         Fields fields = h2_get_fields(target);
         fields.push_back(fields.back());
         return request(fields);
       }},
  };
}

std::vector<H2Case> body_cases() {
  return {
      {"length-short", "Content-Length above the body",
       [](const Target& target) {
         return post(target, {{"content-length", "6"}}) +
                h2_frame(FrameType::data, FrameFlag::end_stream, 1, "hello");
       }},
      {"length-long", "Content-Length below the body",
       [](const Target& target) {
         return post(target, {{"content-length", "4"}}) +
                h2_frame(FrameType::data, FrameFlag::end_stream, 1, "hello");
       }},
      {"length-repeated", "two Content-Length",
       [](const Target& target) {
         return post(target, {{"content-length", "5"}, {"content-length", "6"}}) +
                h2_frame(FrameType::data, FrameFlag::end_stream, 1, "hello");
       }},
      {"trailers-connection", "Connection in trailers",
       [](const Target& target) {
         return post(target) + h2_frame(FrameType::data, 0, 1, "hello") +
                h2_frame(FrameType::headers, h2_whole, 1, h2_block({{"connection", "close"}}));
       }},
      {"trailers-pseudo", "a pseudo-header field in trailers",
       [](const Target& target) {
         return post(target) + h2_frame(FrameType::data, 0, 1, "hello") +
                h2_frame(FrameType::headers, h2_whole, 1, h2_block({{":path", "/"}}));
       }},
  };
}

std::vector<H2Case> hpack_cases() {
  std::vector<H2Case> cases{
      {"hpack-index-0", "the index 0",
       [](const Target& target) { return get_and_bytes(target, "\x80"); }},
      {"hpack-index", "an index beyond both tables",
       [](const Target& target) { return get_and_bytes(target, "\xff\x20"); }},
      {"hpack-integer", "an integer of more than 32 bits",
       [](const Target& target) { return get_and_bytes(target, "\xff\xff\xff\xff\xff\xff\x0f"); }},
      {"hpack-cut", "a block that ends in a field",
       [](const Target& target) {
         return get_and_bytes(target, std::string_view("\x00\x01x\x05v", 5));
       }},
      {"hpack-huffman-end", "EOS in a Huffman code",
       [](const Target& target) {
         return get_and_bytes(target, std::string_view("\x00\x01x\x84\xff\xff\xff\xff", 8));
       }},
      {"hpack-huffman-zeros", "padding of zeros in a Huffman code",
       [](const Target& target) {
         return get_and_bytes(target, std::string_view("\x00\x01x\x81\x18", 5));
       }},
      {"hpack-huffman-long", "padding of a byte in a Huffman code",
       [](const Target& target) {
         return get_and_bytes(target, std::string_view("\x00\x01x\x82\x1f\xff", 6));
       }},
      {"hpack-size-late", "a table size update after a field",
       [](const Target& target) { return get_and_bytes(target, "\x20"); }},
      {"hpack-size", "a table size update above the limit",
       [](const Target& target) {
         return h2_frame(FrameType::headers, h2_whole, 1,
                         "\x3f\xff\xff\x7f" + h2_block(h2_get_fields(target)));
       }},
  };
  for (H2Case& each : cases) {
    each.wanted = H2Wanted::connection_error;
    each.error = H2Error::compression_error;
  }
  return cases;
}

/// Blocks that decode to far more bytes than they have.
std::vector<H2Case> bomb_cases() {
  return {
      {"bomb-references", "12,000 references to a field of 4,000 bytes",
       [](const Target& target) {
         const std::string field =
             "\x40\x04"
             "bomb"
             "\x7f\xa1\x1e" +
             std::string(4000, 'v');
         return get_and_bytes(target, field + std::string(12'000, '\xbe'));
       },
       H2Wanted::stream_error, H2Error::enhance_your_calm},
      {"bomb-crumbs", "64,000 empty crumbs of a cookie",
       [](const Target& target) {
         const std::string crumbs(16'000, '\xa0');
         const std::string more = h2_frame(FrameType::continuation, 0, 1, crumbs);
         return h2_frame(FrameType::headers, FrameFlag::end_stream, 1,
                         h2_block(h2_get_fields(target)) + crumbs) +
                more + more + h2_frame(FrameType::continuation, FrameFlag::end_headers, 1, crumbs);
       },
       H2Wanted::stream_error, H2Error::enhance_your_calm},
  };
}

std::vector<H2Case> frame_cases() {
  std::vector<H2Case> cases{
      {"frames-idle-data", "DATA on an idle stream",
       [](const Target&) { return h2_frame(FrameType::data, FrameFlag::end_stream, 1, "hello"); }},
      {"frames-idle-reset", "RST_STREAM on an idle stream",
       [](const Target&) { return h2_frame(FrameType::rst_stream, 0, 1, h2_number(8)); }},
      {"frames-even-stream", "a request on stream 2",
       [](const Target& target) {
         return h2_frame(FrameType::headers, h2_whole, 2, h2_block(h2_get_fields(target)));
       }},
      {"frames-stream-0", "a request on stream 0",
       [](const Target& target) {
         return h2_frame(FrameType::headers, h2_whole, 0, h2_block(h2_get_fields(target)));
       }},
      {"frames-continuation", "CONTINUATION without HEADERS",
       [](const Target& target) {
         return h2_frame(FrameType::continuation, FrameFlag::end_headers, 1,
                         h2_block(h2_get_fields(target)));
       }},
      {"frames-interleaved", "PING in the middle of a field block",
       [](const Target& target) {
         return h2_frame(FrameType::headers, FrameFlag::end_stream, 1,
                         h2_block(h2_get_fields(target))) +
                h2_ping();
       }},
      {"frames-push", "PUSH_PROMISE of a client",
       [](const Target& target) {
         return h2_frame(FrameType::push_promise, FrameFlag::end_headers, 1,
                         h2_number(2) + h2_block(h2_get_fields(target)));
       }},
      {"frames-padding", "padding that is longer than the frame",
       [](const Target& target) {
         return post(target) + h2_frame(FrameType::data, FrameFlag::padded, 1, "\x0ahello");
       }},
  };
  for (H2Case& each : cases) each.wanted = H2Wanted::connection_error;
  return cases;
}

std::vector<H2Case> control_frame_cases() {
  std::vector<H2Case> cases{
      {"frames-window-0", "WINDOW_UPDATE of 0 on the connection",
       [](const Target&) { return h2_frame(FrameType::window_update, 0, 0, h2_number(0)); }},
      {"frames-settings-stream", "SETTINGS on a stream",
       [](const Target&) { return h2_frame(FrameType::settings, 0, 1, ""); }},
      {"frames-settings-frame-size", "SETTINGS_MAX_FRAME_SIZE of 1",
       [](const Target&) {
         return h2_frame(FrameType::settings, 0, 0, std::string("\0\5", 2) + h2_number(1));
       }},
      {"frames-goaway-stream", "GOAWAY on a stream",
       [](const Target&) {
         return h2_frame(FrameType::goaway, 0, 1, h2_number(0) + h2_number(0));
       }},
      {"frames-window-overflow", "a window of the connection above 2^31 - 1",
       [](const Target&) {
         return h2_frame(FrameType::window_update, 0, 0, h2_number(0x7fffffff));
       },
       H2Wanted::connection_error, H2Error::flow_control_error},
      {"frames-settings-window", "SETTINGS_INITIAL_WINDOW_SIZE of 2^31",
       [](const Target&) {
         return h2_frame(FrameType::settings, 0, 0, std::string("\0\4", 2) + h2_number(0x80000000));
       },
       H2Wanted::connection_error, H2Error::flow_control_error},
      {"frames-settings-length", "SETTINGS of 5 bytes",
       [](const Target&) { return h2_frame(FrameType::settings, 0, 0, "12345"); },
       H2Wanted::connection_error, H2Error::frame_size_error},
      {"frames-settings-ack", "SETTINGS with ACK and a payload",
       [](const Target&) { return h2_frame(FrameType::settings, FrameFlag::ack, 0, "123456"); },
       H2Wanted::connection_error, H2Error::frame_size_error},
      {"frames-ping-length", "PING of 7 bytes",
       [](const Target&) { return h2_frame(FrameType::ping, 0, 0, "7 bytes"); },
       H2Wanted::connection_error, H2Error::frame_size_error},
      {"frames-too-large", "HEADERS of 1 MiB",
       [](const Target&) {
         return h2_frame(FrameType::headers, h2_whole, 1, std::string(1 << 20U, 'x'));
       },
       H2Wanted::connection_error, H2Error::frame_size_error},
  };
  for (H2Case& each : cases) each.wanted = H2Wanted::connection_error;
  return cases;
}

}  // namespace

const std::vector<H2Case>& h2_cases() {
  static const std::vector<H2Case> cases = [] {
    std::vector<H2Case> all = field_cases();
    for (const auto& group : {pseudo_cases(), body_cases(), hpack_cases(), bomb_cases(),
                              frame_cases(), control_frame_cases(), h2_attack_cases()}) {
      all.insert(all.end(), group.begin(), group.end());
    }
    return all;
  }();
  return cases;
}

std::string describe_wanted(const H2Case& test_case) {
  const std::string code = std::to_string(static_cast<unsigned>(test_case.error));
  switch (test_case.wanted) {
    case H2Wanted::served:
      return "the answer of a GET";
    case H2Wanted::stream_error:
      return "RST_STREAM with the error " + code + ", 4xx, or the end of the connection";
    case H2Wanted::connection_error:
      return "GOAWAY with the error " + code;
    case H2Wanted::bounded:
      break;
    case H2Wanted::cut_off:
      return "an end of the stream or of the connection in time";
    case H2Wanted::held:
      return "the server holds little more, and serves others";
  }
  return "the end of the connection, or a delay";
}

}  // namespace weir::check
