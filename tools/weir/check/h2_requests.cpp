#include "tools/weir/check/h2_requests.hpp"

namespace weir::check {

using http::FrameType;

std::vector<H2Field> h2_get_fields(const CheckTarget& target) {
  return {{":method", "GET"},
          {":scheme", target.tls == nullptr ? "http" : "https"},
          {":authority", target.authority},
          {":path", target.path}};
}

std::string h2_get(const CheckTarget& target, std::uint32_t stream) {
  return h2_frame(FrameType::headers, h2_whole, stream, h2_block(h2_get_fields(target)));
}

std::string h2_post(const CheckTarget& target, std::uint32_t stream,
                    const std::vector<H2Field>& more) {
  std::vector<H2Field> fields = h2_get_fields(target);
  fields[0].value = "POST";
  fields[3].value = target.post_path;
  fields.insert(fields.end(), more.begin(), more.end());
  return h2_frame(FrameType::headers, http::FrameFlag::end_headers, stream, h2_block(fields));
}

std::string h2_number(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string h2_repeated(std::string_view text, std::size_t count) {
  std::string all;
  all.reserve(text.size() * count);
  for (std::size_t left = count; left > 0; --left) all += text;
  return all;
}

std::string h2_setting(http::SettingId id, std::uint32_t value) {
  const auto number = static_cast<std::uint16_t>(id);
  const std::string entry{static_cast<char>(number >> 8U), static_cast<char>(number)};
  return h2_frame(FrameType::settings, 0, 0, entry + h2_number(value));
}

std::string h2_window_update(std::uint32_t stream, std::uint32_t increment) {
  return h2_frame(FrameType::window_update, 0, stream, h2_number(increment));
}

std::string h2_rst_stream(std::uint32_t stream) {
  return h2_frame(FrameType::rst_stream, 0, stream,
                  h2_number(static_cast<std::uint32_t>(http::H2Error::cancel)));
}

std::string h2_ping(std::string_view opaque) {
  return h2_frame(FrameType::ping, 0, 0, opaque);
}

}  // namespace weir::check
