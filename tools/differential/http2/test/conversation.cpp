#include "tools/differential/http2/test/conversation.hpp"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <new>

#include "weir/http/detail/h2/session.hpp"
#include "weir/http/test/h2_client_fixture.hpp"

namespace weir::differential {

using namespace http::frames;
using http::FrameFlag;
using http::FrameType;
using http::SettingId;

void ConversationMaker::FreeDeflater::operator()(nghttp2_hd_deflater* deflater) const noexcept {
  nghttp2_hd_deflate_del(deflater);
}

ConversationMaker::ConversationMaker(std::uint32_t seed) : random_(seed) {}

Conversation ConversationMaker::make() {
  struct Step {
    void (ConversationMaker::*send)();
    std::string_view kind;
  };
  constexpr std::array<Step, 11> steps{{{&ConversationMaker::send_valid, "valid"},
                                        {&ConversationMaker::send_any_frame, "any frame"},
                                        {&ConversationMaker::send_invalid_head, "head"},
                                        {&ConversationMaker::send_mutated_block, "mutated block"},
                                        {&ConversationMaker::send_setting, "setting"},
                                        {&ConversationMaker::send_window_update, "window update"},
                                        {&ConversationMaker::send_body_of_length, "length"},
                                        {&ConversationMaker::send_trailers, "trailers"},
                                        {&ConversationMaker::send_cut_block, "cut block"},
                                        {&ConversationMaker::send_mutated_frame, "mutated frame"},
                                        {&ConversationMaker::send_on_closed_stream, "closed"}}};
  nghttp2_hd_deflater* deflater = nullptr;
  if (nghttp2_hd_deflate_new(&deflater, 4096) != 0) throw std::bad_alloc();
  deflater_.reset(deflater);
  next_ = 1;
  frames_ = {preface()};
  for (std::uint32_t count = below(5); count > 0; --count) send_valid();
  const Step& step = one_of(steps);
  (this->*step.send)();
  add(ping("the step"));
  for (std::uint32_t count = below(3); count > 0; --count) send_valid();
  add(ping("the last"));
  return {std::move(frames_), step.kind};
}

std::uint32_t ConversationMaker::any_stream() {
  return one_in(8) ? below(next_ + 2) : one_in(8) ? 0 : 1 + 2 * below(next_ / 2 + 1);
}

std::uint32_t ConversationMaker::any_value() {
  return one_of(std::array<std::uint32_t, 12>{0, 1, 2, 100, 16'383, 16'384, 16'777'215, 16'777'216,
                                              0x7FFF0000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF});
}

// Fields.

std::string ConversationMaker::encode(const Fields& fields) {
  std::string out;
  if (one_in(4)) {  // as Weir's own encoder writes them
    for (const auto& [name, value] : fields) out += block({{name, value}});
    return out;
  }
  if (one_in(20)) nghttp2_hd_deflate_change_table_size(deflater_.get(), below(2) * 2048);
  std::vector<nghttp2_nv> all;
  for (const auto& [name, value] : fields) {
    const auto bytes = [](const std::string& text) {
      return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
    };
    const std::uint8_t flags = one_in(6) ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
    all.push_back({bytes(name), bytes(value), name.size(), value.size(), flags});
  }
  out.resize(nghttp2_hd_deflate_bound(deflater_.get(), all.data(), all.size()));
  const auto size =
      nghttp2_hd_deflate_hd(deflater_.get(), reinterpret_cast<std::uint8_t*>(out.data()),
                            out.size(), all.data(), all.size());
  if (size < 0) throw std::bad_alloc();
  out.resize(static_cast<std::size_t>(size));
  return out;
}

ConversationMaker::Fields ConversationMaker::head(std::string_view method) {
  constexpr std::array<std::string_view, 4> paths{"/", "/a/b?c=d", "/%c3%a4", "/index.html"};
  return {{":method", std::string(method)},
          {":scheme", "http"},
          {":path", std::string(one_of(paths))},
          {":authority", "weir.test"}};
}

ConversationMaker::Field ConversationMaker::any_field() {
  constexpr std::array<std::string_view, 20> names{
      "x",      "X",          "x y",     "",           ":path",
      "te",     "connection", "trailer", "x:",         "host",
      "cookie", "accept",     "expect",  "keep-alive", "transfer-encoding",
      "x-\x80", "upgrade",    "x_y",     "priority",   "content-length"};
  constexpr std::array<std::string_view, 16> values{
      "v",        "",    "a b",  " v",  "v\r\nw", "v ",        "\x7f",         "\x80\xff",
      "trailers", "\ta", "a\tb", "a=b", "3",      "weir.test", "100-continue", "\x01"};
  return {std::string(one_of(names)), std::string(one_of(values))};
}

void ConversationMaker::add_fields(Fields& fields, std::uint32_t count) {
  constexpr std::array<Field::first_type::size_type, 4> lengths{1, 30, 200, 600};
  for (; count > 0; --count) {
    switch (below(4)) {
      case 0:
        fields.emplace_back("x-" + std::to_string(below(8)), std::to_string(below(4)));
        break;
      case 1:
        fields.emplace_back("cookie", "c" + std::to_string(below(3)) + "=1");
        break;
      case 2:
        fields.emplace_back("x-long", std::string(one_of(lengths), 'v'));
        break;
      default:
        fields.emplace_back("accept-encoding", "gzip, deflate");
    }
  }
}

// Valid requests.

void ConversationMaker::send_head(std::uint32_t stream, std::string block, bool ends) {
  std::string prefix;
  std::uint8_t flags = ends ? FrameFlag::end_stream : 0;
  const std::uint32_t padding = one_in(6) ? below(9) : 0;
  if (padding != 0) prefix += static_cast<char>(padding), flags |= FrameFlag::padded;
  if (one_in(6)) prefix += u32(0) + "\x10", flags |= FrameFlag::priority;
  const std::size_t cut =
      one_in(6) ? below(static_cast<std::uint32_t>(block.size()) + 1) : block.size();
  if (cut == block.size()) flags |= FrameFlag::end_headers;
  add(headers(stream, prefix + block.substr(0, cut) + std::string(padding, '\0'), flags));
  if (cut != block.size()) add(continuation(stream, block.substr(cut)));
}

void ConversationMaker::send_body(std::uint32_t stream, std::string_view content, bool ends) {
  const std::size_t cut = below(static_cast<std::uint32_t>(content.size()) + 1);
  if (cut != 0) add(data(stream, content.substr(0, cut)));
  std::string last(content.substr(cut));
  std::uint8_t flags = ends ? FrameFlag::end_stream : 0;
  if (one_in(4)) {
    const std::uint32_t padding = below(9);
    last = static_cast<char>(padding) + last + std::string(padding, '\0');
    flags |= FrameFlag::padded;
  }
  add(data(stream, last, flags));
}

void ConversationMaker::send_valid() {
  switch (below(8)) {
    case 0:
      return add(ping());
    case 1:
      return add(window_update(0, 1 + below(100)));
    case 2:
      return add(settings(setting(SettingId::initial_window_size, below(100'000))));
    case 3:
      return add(frame(FrameType::priority, 0, new_stream(), u32(0) + "\x10"));
    default:
      break;
  }
  const std::uint32_t stream = new_stream();
  const std::uint32_t content = one_in(3) ? below(20) : 0;
  const bool has_body = one_in(2);
  Fields fields = head(has_body ? "POST" : "GET");
  if (has_body && one_in(2)) fields.emplace_back("content-length", std::to_string(content));
  add_fields(fields, below(4));
  send_head(stream, encode(fields), !has_body);
  if (!has_body) return;
  const bool has_trailers = one_in(3);
  if (one_in(8)) return;  // the body does not end
  send_body(stream, std::string(content, 'b'), !has_trailers);
  if (has_trailers) send_head(stream, encode({{"x-sum", "7"}}), true);
}

// Steps that may be wrong.

void ConversationMaker::send_any_frame() {
  constexpr std::array<std::uint32_t, 6> sizes{0, 4, 5, 6, 8, 12};
  std::string payload(one_in(3) ? below(20) : one_of(sizes), '\0');
  for (char& each : payload) each = static_cast<char>(one_in(3) ? below(256) : below(4));
  const auto flags = static_cast<std::uint8_t>(one_in(2) ? 0 : below(64));
  add(frame(static_cast<FrameType>(below(12)), flags, any_stream(), payload));
}

void ConversationMaker::send_invalid_head() {
  Fields fields = head(one_in(4) ? "HEAD" : "GET");
  switch (below(6)) {
    case 0:
      fields.erase(fields.begin() + below(4));
      break;
    case 1:
      fields.push_back(fields[below(4)]);
      break;
    case 2: {
      constexpr std::array<std::string_view, 10> paths{"",      "a",   "*",         "//", "/a b",
                                                       "/\x80", "/#f", "http://a/", "/%", "/\t"};
      constexpr std::array<std::string_view, 8> methods{"G T",     "",        "get",   "CONNECT",
                                                        "OPTIONS", "\x80GET", "PATCH", "TRACE"};
      constexpr std::array<std::string_view, 9> hosts{"a b",   "",    "a:80", "u@a", "a:x",
                                                      "[::1]", "a/b", "\x80", "a,b"};
      constexpr std::array<std::string_view, 5> schemes{"ht tp", "https", "HTTP", "ftp", ""};
      constexpr std::array<std::string_view, 3> others{":status", ":none", ":protocol"};
      switch (below(5)) {
        case 0:
          fields[0].second = one_of(methods);
          break;
        case 1:
          fields[1].second = one_of(schemes);
          break;
        case 2:
          fields[2].second = one_of(paths);
          break;
        case 3:
          fields[3].second = one_of(hosts);
          break;
        default:
          fields[below(4)] = {std::string(one_of(others)), "v"};
      }
      break;
    }
    case 3:
      std::ranges::rotate(fields, fields.begin() + below(4));
      break;
    default:
      break;
  }
  for (std::uint32_t count = below(4); count > 0; --count) fields.push_back(any_field());
  if (one_in(8)) std::ranges::rotate(fields, fields.end() - 1);
  send_head(new_stream(), encode(fields), !one_in(3));
}

void ConversationMaker::send_mutated_block() {
  Fields fields = head("GET");
  add_fields(fields, below(4));
  std::string input = encode(fields);
  for (std::uint32_t count = 1 + below(3); count > 0; --count) {
    const std::uint32_t at = below(static_cast<std::uint32_t>(input.size()));
    switch (below(4)) {
      case 0:
        input.erase(at, 1);
        break;
      case 1:
        input.insert(at, 1, static_cast<char>(below(256)));
        break;
      case 2:
        input[at] = static_cast<char>(below(256));
        break;
      default:
        input[at] = static_cast<char>(input[at] ^ static_cast<char>(1U << below(8)));
    }
    if (input.empty()) break;
  }
  send_head(new_stream(), input, true);
}

void ConversationMaker::send_setting() {
  std::string entries;
  for (std::uint32_t count = 1 + below(2); count > 0; --count) {
    entries += setting(static_cast<SettingId>(below(11)), any_value());
  }
  add(settings(entries));
}

void ConversationMaker::send_window_update() {
  const std::uint32_t stream = any_stream();
  for (std::uint32_t count = 1 + below(2); count > 0; --count) {
    add(window_update(stream, any_value() & 0x7FFFFFFF));
  }
}

void ConversationMaker::send_body_of_length() {
  constexpr std::array<std::string_view, 12> lengths{
      "0", "1", "2", "3", "03", "+3", "-1", "", "3, 3", "3 ", "18446744073709551616", "x"};
  const std::uint32_t stream = new_stream();
  Fields fields = head(one_in(4) ? "GET" : "POST");
  fields.emplace_back("content-length", one_of(lengths));
  if (one_in(6)) fields.emplace_back("content-length", one_of(lengths));
  const bool ends = one_in(6);
  send_head(stream, encode(fields), ends);
  if (!ends) send_body(stream, std::string(below(5), 'x'), !one_in(4));
}

void ConversationMaker::send_trailers() {
  const std::uint32_t stream = new_stream();
  send_head(stream, encode(head("POST")), false);
  if (!one_in(3)) send_body(stream, "hello", one_in(8));
  Fields fields;
  for (std::uint32_t count = below(3); count > 0; --count) fields.push_back(any_field());
  send_head(stream, encode(fields), !one_in(4));
  if (one_in(4)) send_body(stream, "more", true);
}

void ConversationMaker::send_cut_block() {
  const std::uint32_t stream = new_stream();
  const std::string block = encode(head("GET"));
  const std::size_t cut = below(static_cast<std::uint32_t>(block.size()));
  add(headers(stream, block.substr(0, cut), FrameFlag::end_stream));
  if (one_in(3)) send_any_frame();
  const std::uint8_t flags = one_in(4) ? 0 : FrameFlag::end_headers;
  add(continuation(one_in(4) ? stream + 2 : stream, block.substr(cut), flags));
  if (one_in(4)) add(continuation(stream, ""));
}

void ConversationMaker::send_mutated_frame() {
  const std::size_t from = frames_.size();
  while (frames_.size() == from) send_valid();
  std::string& input = frames_[from + below(static_cast<std::uint32_t>(frames_.size() - from))];
  if (one_in(6)) {
    input.resize(below(static_cast<std::uint32_t>(input.size())));
    return;
  }
  const std::uint32_t at =
      below(std::min<std::uint32_t>(16, static_cast<std::uint32_t>(input.size())));
  input[at] = static_cast<char>(input[at] ^ static_cast<char>(1U << below(8)));
}

void ConversationMaker::send_on_closed_stream() {
  const std::uint32_t stream = new_stream();
  send_head(stream, encode(head("GET")), true);
  if (one_in(2)) add(rst_stream(stream));
  switch (below(5)) {
    case 0:
      return add(data(stream, "late", one_in(2) ? FrameFlag::end_stream : 0));
    case 1:
      return send_head(stream, encode(head("GET")), true);
    case 2:
      return add(rst_stream(stream));
    case 3:
      return add(window_update(stream, any_value() & 0x7FFFFFFF));
    default:
      return add(frame(FrameType::priority, 0, stream, u32(one_in(2) ? stream : 0) + "\x10"));
  }
}

}  // namespace weir::differential
