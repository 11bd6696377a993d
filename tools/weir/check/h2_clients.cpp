#include "tools/weir/check/h2_clients.hpp"

#include "tools/weir/check/h2_requests.hpp"

namespace weir::check {
namespace {

using http::FrameFlag;
using http::FrameType;
using http::SettingId;

constexpr std::uint32_t browser_streams = 40;
constexpr std::uint32_t calls = 40;

std::string wide_windows() {
  constexpr std::uint32_t window = 0x3fff0000;
  return h2_setting(SettingId::initial_window_size, window) + h2_window_update(0, window);
}

std::string priority(std::uint32_t stream, std::uint32_t parent, char weight) {
  return h2_frame(FrameType::priority, 0, stream, h2_number(parent) + weight);
}

/// A page with 40 requests. The user leaves it when half of them have begun.
H2Round leave_page(const CheckTarget& target, std::uint32_t number) {
  H2Round round;
  const std::uint32_t first = 2 * browser_streams * number + 15;
  for (std::uint32_t at = 0; at < browser_streams; ++at) {
    const std::uint32_t stream = first + 2 * at;
    round.frames += h2_get(target, stream) + priority(stream, 3, 31);
    if (at % 2 == 0) {
      round.answered.push_back(stream);
    } else {
      round.frames += h2_rst_stream(stream);
    }
  }
  round.frames += h2_ping("a page..");
  return round;
}

/// 40 calls at the same time. The client cancels half of them: hedged requests.
H2Round hedge_calls(const CheckTarget& target, std::uint32_t number) {
  H2Round round;
  round.posts = true;
  const std::uint32_t first = 2 * calls * number + 1;
  for (std::uint32_t at = 0; at < calls; ++at) {
    const std::uint32_t stream = first + 2 * at;
    round.frames += h2_post(target, stream);
    if (at % 2 == 0) {
      round.frames += h2_frame(FrameType::data, FrameFlag::end_stream, stream, "hello");
      round.answered.push_back(stream);
    } else {
      round.frames += h2_rst_stream(stream);
    }
  }
  round.frames += h2_ping("a call..") + h2_window_update(0, 1);
  return round;
}

H2Round one_request(const CheckTarget& target, std::uint32_t number) {
  H2Round round;
  const std::uint32_t stream = 2 * number + 1;
  round.frames = h2_get(target, stream);
  round.answered = {stream};
  return round;
}

}  // namespace

const std::vector<H2Client>& h2_clients() {
  // Firefox began with groups of priorities like these.
  static const std::vector<H2Client> clients{
      {"client-browser", "a browser whose user leaves 25 pages", 25,
       wide_windows() + priority(3, 0, '\xc8') + priority(5, 0, '\x64') + priority(7, 0, '\0') +
           priority(9, 7, '\0') + priority(11, 3, '\0') + priority(13, 0, '\xf0'),
       leave_page},
      {"client-calls", "a client of gRPC that cancels 500 of 1,000 calls", 25, wide_windows(),
       hedge_calls},
      {"client-steady", "500 requests, one after the other", 500, wide_windows(), one_request},
  };
  return clients;
}

}  // namespace weir::check
