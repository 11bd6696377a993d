#include "weir/http/ws/detail/deflate.hpp"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "weir/base/detail/memory_sizes.hpp"
#include "weir/loop/detail/metric_row.hpp"
#include "weir/loop/detail/slots.hpp"

namespace weir::http {
namespace {

using compression::deflate_message_tail;
using compression::RawDeflater;
using compression::RawInflater;

constexpr std::size_t chunk_max = 16 * 1024;  // output of one step of a decompressor

std::unique_ptr<RawDeflater> make_deflater(int window_bits, int level) {
  auto made = RawDeflater::make({.window_bits = window_bits, .level = level});
  if (!made) throw std::bad_alloc();  // can_deflate() has checked the options
  return std::make_unique<RawDeflater>(std::move(*made));
}

std::unique_ptr<RawInflater> make_inflater(int window_bits) {
  auto made = RawInflater::make(window_bits);
  if (!made) throw std::bad_alloc();
  return std::make_unique<RawInflater>(std::move(*made));
}

}  // namespace

// The core.

WsDeflateCore& WsDeflateCore::of(Loop& loop) {
  return loop.slots().get<WsDeflateCore>(loop);
}

RawDeflater& WsDeflateCore::deflater(int window_bits, int level) {
  Shared& shared = shared_[static_cast<std::size_t>(window_bits - deflate_sending_window_min)];
  if (shared.level != level) {
    shared = {};
    shared = {level, make_deflater(window_bits, level)};
  } else {
    shared.deflater->reset();
  }
  return *shared.deflater;
}

std::optional<Buffer> WsDeflateCore::compress(Bytes message, const WsSharedCompression& options) {
  if (message.size() < std::max(options.bytes_min, RawDeflater::room_min)) return {};
  if (message.size() > shared_max) return {};
  Buffer out;
  out.make_room(message.size() + deflate_message_tail.size());
  const MutableBytes room = out.room().first(message.size() + deflate_message_tail.size());
  const compression::Progress done = deflater(options.window_bits, options.level)
                                         .compress(message, room, compression::Flush::sync);
  if (!done.complete || done.produced == room.size()) return {};
  compressed.add();
  out.commit(done.produced - deflate_message_tail.size());
  return out;
}

std::unique_ptr<RawInflater> WsDeflateCore::take_inflater() {
  const auto found = std::ranges::find_if(idle_, [](const auto& each) { return each != nullptr; });
  if (found == idle_.end()) return make_inflater(deflate_window_max);
  return std::exchange(*found, nullptr);
}

void WsDeflateCore::give_back(std::unique_ptr<RawInflater> inflater) noexcept {
  const auto place = std::ranges::find_if(idle_, [](const auto& each) { return each == nullptr; });
  if (place == idle_.end()) return;
  inflater->reset();
  *place = std::move(inflater);
}

std::uint64_t WsDeflateCore::bytes_max() noexcept {
  std::uint64_t sum = idle_max * compression::raw_inflate_bytes_max(deflate_window_max);
  for (int bits = deflate_sending_window_min; bits <= deflate_window_max; ++bits) {
    sum += compression::raw_deflate_bytes_max({.window_bits = bits});
  }
  return sum;
}

void WsDeflateCore::collect(MetricSnapshot& sum) const {
  using Row = weir::detail::MetricRow<WsDeflateCore>;
  using weir::detail::count_of;
  static constexpr Row rows[]{
      {"compressed WebSocket messages",
       count_of<&WsDeflateCore::compressed>,
       {"weir.http.websocket.messages.compressed", "{message}", "WebSocket messages compressed."}},
      {"decompressed WebSocket messages",
       count_of<&WsDeflateCore::decompressed>,
       {"weir.http.websocket.messages.decompressed", "{message}",
        "WebSocket messages decompressed."}},
      {"WebSocket messages that cannot be decompressed",
       count_of<&WsDeflateCore::rejected>,
       {"weir.http.websocket.messages.rejected", "{message}",
        "WebSocket messages that cannot be decompressed."}},
  };
  weir::detail::collect_rows<WsDeflateCore>(sum, rows, *this);
}

// The connection.

WsDeflate::WsDeflate(Loop& loop, WsRole role, const WebSocketDeflate& agreed,
                     const WebSocketCompression& options)
    : loop_(loop),
      core_(WsDeflateCore::of(loop)),
      sends_(role == WsRole::server ? agreed.server : agreed.client),
      receives_(role == WsRole::server ? agreed.client : agreed.server),
      level_(static_cast<std::uint8_t>(options.level)),
      bytes_min_(options.bytes_min) {}

WsDeflate::~WsDeflate() {
  if (inflater_ != nullptr && !receives_.has_context) core_.give_back(std::move(inflater_));
}

bool WsDeflate::compresses(const WebSocketMessage& piece, bool continues) noexcept {
  if (!continues) {
    compresses_ = sends_.window_bits >= deflate_sending_window_min &&
                  (!piece.ends || (piece.bytes.size() >= bytes_min_ && !piece.bytes.empty()));
  }
  return compresses_;
}

std::optional<WsSharedCompression> WsDeflate::shared() const noexcept {
  if (sends_.has_context || sends_.window_bits < deflate_sending_window_min) return {};
  return WsSharedCompression{sends_.window_bits, level_, bytes_min_};
}

std::size_t WsDeflate::compress(Bytes slice, bool ends, MutableBytes out) {
  assert(slice.size() <= slice_max && out.size() >= room_for(slice.size()));
  if (slice.empty()) {
    // An empty block without compression, whose other bytes are the tail (RFC 7692 §7.2.3.6).
    if (ends) out[0] = std::byte{0};
    return ends ? 1 : 0;
  }
  if (sends_.has_context && deflater_ == nullptr) {
    deflater_ = make_deflater(sends_.window_bits, level_);
  }
  // Without a context, the slices of a message do not refer to each other either.
  RawDeflater& deflater =
      sends_.has_context ? *deflater_ : core_.deflater(sends_.window_bits, level_);
  const compression::Progress done = deflater.compress(slice, out, compression::Flush::sync);
  assert(done.complete && done.produced > deflate_message_tail.size());
  work_.count(done);
  core_.compressed.add();
  return done.produced - (ends ? deflate_message_tail.size() : 0);
}

WsDeflate::Step WsDeflate::decompress(WsEvent& part, std::uint64_t message_bytes_max,
                                      std::size_t room_max, Buffer& out) {
  const auto reject = [this](WebSocketCloseCode code) {
    core_.rejected.add();
    return Step{.complete = true, .failure = code};
  };
  if (std::exchange(part.begins, false)) {
    received_ = 0;
    utf8_ = {};
  }
  if (inflater_ == nullptr) {
    inflater_ =
        receives_.has_context ? make_inflater(receives_.window_bits) : core_.take_inflater();
  }
  for (std::size_t added = 0;;) {
    const bool in_tail = part.bytes.empty() && part.ends;
    const Bytes rest = in_tail ? Bytes(deflate_message_tail).subspan(tail_used_) : part.bytes;
    if (rest.empty() && !output_full_) break;
    if (added == room_max || turn_is_used()) return {};
    const Bytes input = work_.input(rest);
    const std::uint64_t left = message_bytes_max - received_;
    std::size_t room = work_.output(std::min(chunk_max, room_max - added));
    if (left < room) room = static_cast<std::size_t>(left) + 1;  // one more shows the excess
    out.make_room(room);
    const MutableBytes to = out.room().first(room);
    const Result<compression::Progress> step = inflater_->decompress(input, to);
    if (!step) return reject(WebSocketCloseCode::invalid_data);
    work_.count(*step);
    if (in_tail) {
      tail_used_ = static_cast<std::uint8_t>(tail_used_ + step->consumed);
    } else {
      part.bytes = part.bytes.subspan(step->consumed);
    }
    output_full_ = step->produced == room;
    // A decompressor that neither takes nor gives is at the end of invalid data.
    if (step->consumed == 0 && step->produced == 0 && !input.empty()) {
      return reject(WebSocketCloseCode::invalid_data);
    }
    if (step->produced > left) return reject(WebSocketCloseCode::message_too_big);
    if (part.is_text && utf8_.check(to_text(to.first(step->produced))) != step->produced) {
      return reject(WebSocketCloseCode::invalid_data);
    }
    received_ += step->produced;
    added += step->produced;
    out.commit(step->produced);
  }
  if (!part.ends) return {.complete = true};
  tail_used_ = 0;
  if (!receives_.has_context) core_.give_back(std::move(inflater_));
  if (part.is_text && !utf8_.complete()) return reject(WebSocketCloseCode::invalid_data);
  core_.decompressed.add();
  return {.complete = true};
}

std::uint64_t WsDeflate::bytes_max(const WebSocketCompression& options) noexcept {
  using weir::detail::block;
  const int receive =
      options.receive_window_bits == 0 ? deflate_window_max : options.receive_window_bits;
  return block(sizeof(WsDeflate)) + block(sizeof(RawInflater)) +
         compression::raw_inflate_bytes_max(receive) +
         (options.send_window_bits == 0
              ? 0
              : block(sizeof(RawDeflater)) +
                    compression::raw_deflate_bytes_max({.window_bits = options.send_window_bits}));
}

}  // namespace weir::http
