#include "tools/weir/check/h2_wire.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "weir/base/detail/bytes.hpp"
#include "weir/http/detail/h2/hpack_decoder.hpp"
#include "weir/http/detail/h2/session.hpp"
#include "weir/net/tls_info.hpp"

namespace weir::check {
namespace {

using http::FrameFlag;
using http::FrameType;

constexpr std::uint32_t list_bytes_max = 64 * 1024;

std::uint32_t number_at(std::string_view bytes, std::size_t offset, std::size_t size) {
  std::uint32_t value = 0;
  for (const char each : bytes.substr(std::min(offset, bytes.size()), size)) {
    value = value << 8U | static_cast<unsigned char>(each);
  }
  return value;
}

/// Appends a string literal (RFC 7541, 5.2).
void append_literal(std::string& block, std::string_view text) {
  constexpr std::size_t prefix = 127;
  block += static_cast<char>(std::min(text.size(), prefix));
  if (text.size() >= prefix) {
    std::size_t rest = text.size() - prefix;
    for (; rest >= 128; rest >>= 7U) block += static_cast<char>(rest | 128U);
    block += static_cast<char>(rest);
  }
  block += text;
}

}  // namespace

std::string h2_frame(FrameType type, std::uint8_t flags, std::uint32_t stream,
                     std::string_view payload) {
  std::string frame(http::frame_header_size, '\0');
  const http::FrameHeader header{static_cast<std::uint32_t>(payload.size()), type, flags, stream};
  http::write_frame_header(header, frame.data());
  return frame.append(payload);
}

std::string h2_begin() {
  return std::string(http::H2Session::client_preface) + h2_frame(FrameType::settings, 0, 0, "");
}

std::string h2_block(const std::vector<H2Field>& fields) {
  std::string block;
  for (const H2Field& each : fields) {
    block += '\0';
    append_literal(block, each.name);
    append_literal(block, each.value);
  }
  return block;
}

void H2Answers::read(std::string_view bytes) {
  input_ += bytes;
  while (input_.size() >= http::frame_header_size && !speaks_other_) {
    const std::uint32_t length = number_at(input_, 0, 3);
    const auto type = static_cast<FrameType>(input_[3]);
    const auto flags = static_cast<std::uint8_t>(input_[4]);
    const std::uint32_t stream = number_at(input_, 5, 4) & http::stream_id_max;
    if (!speaks_h2_ && (type != FrameType::settings || stream != 0)) speaks_other_ = true;
    if (speaks_other_ || input_.size() < http::frame_header_size + length) return;
    speaks_h2_ = true;
    const std::string payload = input_.substr(http::frame_header_size, length);
    input_.erase(0, http::frame_header_size + length);
    take({length, type, flags, stream}, payload);
  }
}

void H2Answers::take(const http::FrameHeader& header, std::string_view payload) {
  const bool ends = (header.flags & FrameFlag::end_stream) != 0;
  switch (header.type) {
    case FrameType::data:
      read_data(header, payload);
      break;
    case FrameType::headers:
      // The servers under test send neither padding nor priorities.
      block_.clear();
      block_stream_ = header.stream;
      block_ends_stream_ = ends;
      [[fallthrough]];
    case FrameType::continuation:
      block_ += payload;
      if ((header.flags & FrameFlag::end_headers) == 0) break;
      read_block(block_);
      answers_[block_stream_].ended |= block_ends_stream_;
      break;
    case FrameType::rst_stream:
      ++resets_;
      answers_[header.stream].reset = static_cast<http::H2Error>(number_at(payload, 0, 4));
      break;
    case FrameType::goaway:
      goaway_ = static_cast<http::H2Error>(number_at(payload, 4, 4));
      break;
    case FrameType::ping:
      if ((header.flags & FrameFlag::ack) != 0 && payload == h2_last_ping) ++pings_;
      break;
    case FrameType::window_update:
      if (header.stream == 0) granted_ += number_at(payload, 0, 4);
      break;
    case FrameType::settings:
      read_settings(payload);
      break;
    default:
      break;
  }
}

void H2Answers::read_data(const http::FrameHeader& header, std::string_view payload) {
  // The servers under test send no padding.
  H2Answer& answer = answers_[header.stream];
  answer.ended |= (header.flags & FrameFlag::end_stream) != 0;
  const std::size_t room = Response::stored_body_bytes_max - answer.body.size();
  answer.body += payload.substr(0, std::min(room, payload.size()));
}

void H2Answers::read_settings(std::string_view payload) {
  constexpr std::size_t entry_size = 6;
  for (std::size_t at = 0; at + entry_size <= payload.size(); at += entry_size) {
    const auto id = static_cast<http::SettingId>(number_at(payload, at, 2));
    if (id == http::SettingId::initial_window_size) {
      initial_window_ = number_at(payload, at + 2, 4);
    }
  }
}

void H2Answers::read_block(std::string_view block) {
  std::string scratch(http::HpackDecoder::scratch_size(list_bytes_max), '\0');
  http::HpackDecoder decoder(table_, to_bytes(block), list_bytes_max, scratch);
  while (decoder.next() == http::HpackDecoder::Step::field) {
    const auto& field = decoder.field();
    H2Answer& answer = answers_[block_stream_];
    if (field.name == ":status") {
      answer.status = std::atoi(std::string(field.value).c_str());
    } else {
      answer.fields.push_back({std::string(field.name), std::string(field.value)});
    }
  }
}

const H2Answer& H2Answers::on(std::uint32_t stream) const {
  static const H2Answer none;
  const auto found = answers_.find(stream);
  return found == answers_.end() ? none : found->second;
}

bool H2Answer::has(std::string_view name) const noexcept {
  return std::ranges::find(fields, name, &H2Field::name) != fields.end();
}

Task<bool> H2Wire::open() {
  return connect(target().tls_http2);
}

bool H2Wire::speaks_other() const noexcept {
  return answers_.speaks_other() || (tls() != nullptr && tls()->protocol != "h2");
}

std::optional<Verdict> H2Wire::verdict_without_h2(const std::string& expected) const {
  if (!connected()) return failed(expected, describe());
  if (answers_.speaks_h2() && !speaks_other()) return std::nullopt;
  const bool plain = target().tls_http2 == nullptr;
  return not_applicable(
      expected, describe() + (plain ? ": no HTTP/2 by prior knowledge" : ": no HTTP/2 by ALPN"));
}

Task<> H2Wire::exchange(std::string_view bytes, const Done& done, Duration wait_timeout) {
  done_ = done;
  return transfer(bytes, wait_timeout);
}

std::string H2Wire::describe(std::uint32_t stream) const {
  if (!trouble().empty()) return trouble();
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const auto code = [](http::H2Error error) {
    return std::to_string(static_cast<unsigned>(error));
  };
  const H2Answer& answer = answers_.on(stream);
  if (speaks_other()) add("no HTTP/2");
  if (answer.status != 0) add(std::to_string(answer.status));
  if (answer.reset) add("RST_STREAM " + code(*answer.reset));
  if (const auto error = answers_.goaway()) add("GOAWAY " + code(*error));
  if (answers_.pings() != 0) add("an answer to PING");
  if (text.empty()) return is_closed() ? "closed without an answer" : "no answer";
  return text + (is_closed() ? ", closed" : "");
}

}  // namespace weir::check
