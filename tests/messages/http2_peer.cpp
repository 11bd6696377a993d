#include "tests/messages/http2_peer.hpp"

#include <algorithm>
#include <cctype>
#include <tuple>
#include <utility>

#include "weir/http/detail/h2/hpack_decoder.hpp"
#include "weir/http/test/h2_client_fixture.hpp"
#include "weir/task/scope.hpp"

namespace weir::tests::messages {
namespace {

using http::FrameEvent;
using http::FrameFlag;
using http::FrameType;
namespace frames = http::frames;

constexpr std::uint32_t large_window = 1 << 24;
constexpr std::size_t piece_max = 16'384;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char each) { return static_cast<char>(std::tolower(each)); });
  return text;
}

std::string block_of(const Fields& fields) {
  std::string out;
  for (const auto& [name, value] : fields) {
    std::string room(http::hpack_field_size_max(name, value), '\0');
    out.append(room.data(), http::write_hpack_field(name, value, room.data()));
  }
  return out;
}

}  // namespace

Http2Peer::Http2Peer(Stream& stream, Role role) : stream_(stream) {
  if (role == Role::client) output_ = http::H2Session::client_preface;
  if (role == Role::server) preface_left_ = http::H2Session::client_preface.size();
  output_ += frames::settings(frames::setting(http::SettingId::initial_window_size, large_window));
  output_ += frames::window_update(0, large_window);
}

Task<> Http2Peer::run() {
  const auto both = [this](Scope& scope) -> Task<> {
    scope.spawn(write_all());
    co_await read_all();
    scope.cancel();
  };
  std::ignore = co_await with_scope(OnFailure::isolate, both);
  ended_ = true;
  for (auto& [stream, message] : messages_) {
    if (message.end == End::open) message.end = End::cut;
  }
  notify();
}

Task<> Http2Peer::read_all() {
  for (;;) {
    const auto piece = co_await stream_.read();
    if (!piece) co_return;
    const std::size_t preface = std::min(preface_left_, piece->bytes().size());
    preface_left_ -= preface;
    Bytes rest = piece->bytes().subspan(preface);
    for (;;) {
      const FrameEvent event = reader_.next(rest);
      rest = rest.subspan(event.consumed);
      if (event.kind == FrameEvent::Kind::need_more) break;
      if (event.kind == FrameEvent::Kind::connection_error) co_return;
      take(event);
    }
    notify();
  }
}

Task<> Http2Peer::write_all() {
  for (;;) {
    const std::string now = std::exchange(output_, {});
    if (!now.empty()) {
      writing_ = true;
      const auto written = co_await stream_.write(now);
      if (!written) co_return;
      writing_ = false;
      notify();
    } else {
      const auto waited = co_await changed_.wait();
      if (!waited) co_return;
    }
  }
}

void Http2Peer::take(const FrameEvent& event) {
  switch (event.kind) {
    case FrameEvent::Kind::data:
      messages_[event.stream].body += to_text(event.bytes);
      if (event.last && (event.flags & FrameFlag::end_stream) != 0) {
        end(event.stream, End::complete);
      }
      break;
    case FrameEvent::Kind::block:
      block_ += to_text(event.bytes);
      if (event.type == FrameType::headers && event.first) {
        block_ends_stream_ = (event.flags & FrameFlag::end_stream) != 0;
      }
      if (event.last && (event.flags & FrameFlag::end_headers) != 0) take_block(event.stream);
      break;
    case FrameEvent::Kind::reset:
      if (messages_[event.stream].end == End::open) messages_[event.stream].reset = event.value;
      end(event.stream, End::cut);
      break;
    case FrameEvent::Kind::setting:
      if (event.setting == http::SettingId::initial_window_size) {
        const std::int64_t more = std::int64_t{event.value} - initial_window_;
        for (auto& [stream, window] : windows_) window += more;
        initial_window_ = event.value;
      }
      break;
    case FrameEvent::Kind::settings_end:
      output_ += frames::frame(FrameType::settings, FrameFlag::ack, 0);
      break;
    case FrameEvent::Kind::ping:
      if ((event.flags & FrameFlag::ack) == 0) {
        output_ += frames::ping(to_text(event.bytes), FrameFlag::ack);
      }
      break;
    case FrameEvent::Kind::window_update:
      window_of(event.stream) += event.value;
      break;
    default:
      break;
  }
}

void Http2Peer::take_block(std::uint32_t stream) {
  std::vector<char> scratch(http::HpackDecoder::scratch_size(65'536));
  const std::string block = std::exchange(block_, {});
  http::HpackDecoder decoder(table_, to_bytes(block), 65'536, scratch);
  Fields fields;
  while (decoder.next() == http::HpackDecoder::Step::field) {
    fields.emplace_back(decoder.field().name, decoder.field().value);
  }
  Message& message = messages_[stream];
  const auto status = find(fields, ":status");
  if (status && status->starts_with('1')) return;
  (message.has_head ? message.trailers : message.fields) = std::move(fields);
  message.has_head = true;
  if (block_ends_stream_) end(stream, End::complete);
}

void Http2Peer::end(std::uint32_t stream, End end) {
  Message& message = messages_[stream];
  if (message.end == End::open) message.end = end;
}

void Http2Peer::notify() {
  changed_.set();
  changed_.reset();
}

void Http2Peer::put(std::string frame) {
  output_ += frame;
  notify();
}

std::int64_t& Http2Peer::window_of(std::uint32_t stream) {
  if (stream == 0) return window_;
  return windows_.try_emplace(stream, initial_window_).first->second;
}

Task<> Http2Peer::send(std::uint32_t stream, Fields pseudo, const SentMessage& message) {
  Fields fields = std::move(pseudo);
  const std::size_t size = announced_bytes(message);
  for (const auto& [name, value] : message.fields) fields.emplace_back(lower(name), value);
  if (message.length == Length::declared && size > 0) {
    fields.emplace_back("content-length", std::to_string(size));
  }
  const bool only_head =
      message.body.empty() && message.trailers.empty() && message.end == End::complete;
  put(frames::headers(stream, block_of(fields),
                      FrameFlag::end_headers | (only_head ? FrameFlag::end_stream : 0)));
  if (only_head) co_return;
  const std::size_t pieces = message.body.size() * message.body_repeats;
  for (std::size_t index = 0; index < pieces; ++index) {
    const std::string& each = message.body[index % message.body.size()];
    for (std::size_t at = 0; at < each.size();) {
      while (window_of(stream) <= 0 || window_ <= 0) {
        const auto waited = co_await changed_.wait();
        if (!waited || ended_) co_return;
      }
      const auto room = static_cast<std::size_t>(std::min(window_of(stream), window_));
      const std::size_t part = std::min({each.size() - at, room, piece_max});
      put(frames::data(stream, std::string_view(each).substr(at, part)));
      window_ -= static_cast<std::int64_t>(part);
      window_of(stream) -= static_cast<std::int64_t>(part);
      at += part;
    }
  }
  if (message.end == End::cut) {
    co_await reset(stream);
  } else if (message.end == End::complete && message.trailers.empty()) {
    put(frames::data(stream, "", FrameFlag::end_stream));
  } else if (message.end == End::complete) {
    Fields trailers;
    for (const auto& [name, value] : message.trailers) trailers.emplace_back(lower(name), value);
    put(frames::headers(stream, block_of(trailers)));
  }
}

/// Resets the stream, and waits until the reset is written.
Task<> Http2Peer::reset(std::uint32_t stream) {
  put(frames::rst_stream(stream));
  while ((writing_ || !output_.empty()) && !ended_) {
    const auto waited = co_await changed_.wait();
    if (!waited) co_return;
  }
  end(stream, End::cut);
  notify();
}

Task<std::uint32_t> Http2Peer::next_head() {
  for (;;) {
    const auto next = messages_.upper_bound(last_head_);
    if (next != messages_.end() && next->second.has_head) {
      last_head_ = next->first;
      co_return last_head_;
    }
    if (ended_) co_return 0;
    const auto waited = co_await changed_.wait();
    if (!waited) co_return 0;
  }
}

Task<> Http2Peer::wait_for_end(std::uint32_t stream) {
  while (message(stream).end == End::open && !ended_) {
    const auto waited = co_await changed_.wait();
    if (!waited) co_return;
  }
}

}  // namespace weir::tests::messages
