// Feeds any bytes to an HTTP/2 session whose carrier answers, consumes and resets. The events do
// not depend on cuts, what is sent are valid frames, and the accounts stay within their limits.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "fuzz/require.hpp"
#include "weir/http/detail/h2/session.hpp"

namespace {

using weir::Bytes;
using weir::to_bytes;
using weir::to_text;
using weir::fuzz::ExactCopy;
using weir::fuzz::require;
using namespace weir::http;
using Kind = H2Event::Kind;

/// The choices of the first byte of an input.
struct Options {
  explicit Options(std::uint8_t byte)
      : begins((byte & 1) != 0),
        tight((byte & 2) != 0),
        consumes((byte & 4) != 0),
        answers((byte & 8) != 0),
        releases((byte & 16) != 0),
        role((byte & 32) != 0 ? H2Role::client : H2Role::server) {}
  bool begins;    // the preface and SETTINGS precede the input
  bool tight;     // small limits
  bool consumes;  // data is consumed as it arrives; the windows then depend on the cuts
  bool answers;
  bool releases;
  H2Role role;
};

H2Limits limits_of(const Options& options) {
  H2Limits limits;
  if (!options.tight) return limits;
  limits.streams_max = 3;
  limits.stream_window = 100;
  limits.connection_window = 65'535;
  limits.block_bytes_max = 40;
  limits.block_frames_max = 3;
  limits.control_bytes_max = 200;
  limits.output_max = 50;
  limits.work.burst = 40;
  limits.work.delays_max = 3;
  return limits;
}

class Carrier {
 public:
  explicit Carrier(const Options& options)
      : options_(options), limits_(limits_of(options)), session_(options.role, limits_, now_) {
    session_.start();
    if (options.role != H2Role::client) return;
    static_cast<void>(session_.take_output());  // the preface is no frame
    auto stream = std::make_unique<H2Stream>();
    if (session_.open(*stream)) answer(*stream);
    streams_[stream->id()] = std::move(stream);
  }
  ~Carrier() {
    for (auto& [id, stream] : streams_) session_.release(*stream);
  }

  /// Feeds input in pieces of `step` bytes. Returns a text of all events.
  std::string feed(std::string_view input, std::size_t step) {
    std::string events;
    for (std::size_t at = 0; at < input.size() && !session_.failed(); at += step) {
      const ExactCopy piece(input.substr(at, step));
      Bytes rest = to_bytes(piece.view());
      for (;;) {
        const H2Event event = session_.next(rest, now_);
        require(event.consumed <= rest.size());
        rest = rest.subspan(event.consumed);
        if (event.kind == Kind::need_more || event.kind == Kind::failed) break;
        record(event, events);
        handle(event);
        check();
      }
      require(rest.empty());
    }
    if (session_.failed()) events += "failed";
    send();
    return events;
  }

 private:
  void record(const H2Event& event, std::string& events) {
    // Parts of one body are joined.
    if (event.kind == Kind::data && event.stream_id == last_data_ && last_was_data_) {
      events += to_text(event.bytes);
    } else {
      events += "\n" + std::to_string(static_cast<int>(event.kind)) + " " +
                std::to_string(event.stream_id) + " " +
                std::to_string(static_cast<int>(event.error)) + " ";
      events += to_text(event.bytes);
    }
    if (event.end_stream) events += " end";
    last_was_data_ = event.kind == Kind::data;
    last_data_ = event.stream_id;
  }

  void handle(const H2Event& event) {
    if (event.kind == Kind::delay) now_ += event.delay;
    if (event.kind == Kind::open) {
      if (event.bytes.size() == 7) return session_.reject(H2Error::protocol_error);
      auto stream = std::make_unique<H2Stream>();
      const std::size_t size = event.bytes.size();
      const bool has_length = size != 0 && size % 5 == 0;
      const bool accepted = has_length ? session_.accept(*stream, size) : session_.accept(*stream);
      require(accepted != stream->was_reset());
      H2Stream& opened = *stream;
      streams_[event.stream_id] = std::move(stream);
      if (!opened.closed() && options_.answers && size % 3 != 0) answer(opened);
      return;
    }
    if (event.stream == nullptr) return;
    H2Stream& stream = *event.stream;
    require(streams_.at(stream.id()).get() == &stream);
    if (event.kind == Kind::data && options_.consumes) {
      session_.consume(stream, event.bytes.size());
    }
    if (event.kind == Kind::reset) require(stream.was_reset() && stream.closed());
    if (stream.closed() && options_.releases) {
      session_.release(stream);
      streams_.erase(stream.id());
    }
  }

  void answer(H2Stream& stream) {
    const auto write = [](char* out) { return std::fill_n(out, 3, 'h'); };
    session_.send_headers(stream, 3, write, stream.id() % 4 == 1);
    if (!stream.local_ended()) session_.want_send(stream);
  }

  void check() {
    require(session_.streams_held() <= streams_held_max(limits_));
    require(session_.streams_held() == streams_.size());
    const std::size_t heads = streams_.size() * 100;
    require(session_.output().size() <=
            limits_.control_bytes_max + 2 * limits_.output_max + 100 + heads + 5'000);
  }

  /// Sends what the windows allow and checks the frames.
  void send() {
    const std::string body(64, 'b');
    for (int count = 0; count < 100; ++count) {
      H2Stream* const stream = session_.next_sender();
      if (stream == nullptr) break;
      const auto window = stream->send_window();
      const std::size_t sent = session_.send_data(*stream, to_bytes(body), count % 2 == 0);
      require(sent != 0 && static_cast<std::int64_t>(sent) <= window);
    }
    const weir::Buffer sent = session_.take_output();
    FrameReader reader;
    Bytes rest = sent.bytes();
    for (;;) {
      const FrameEvent frame = reader.next(rest);
      rest = rest.subspan(frame.consumed);
      if (frame.kind == FrameEvent::Kind::need_more) break;
      require(frame.kind != FrameEvent::Kind::connection_error);
      require(frame.kind != FrameEvent::Kind::stream_error);
    }
    require(rest.empty() && reader.between_frames());
  }

  Options options_;
  weir::Instant now_{};
  H2Limits limits_;
  H2Session session_;
  std::map<std::uint32_t, std::unique_ptr<H2Stream>> streams_;
  std::uint32_t last_data_ = 0;
  bool last_was_data_ = false;
};

std::string run(const Options& options, std::string_view input, std::size_t step) {
  return Carrier(options).feed(input, std::max<std::size_t>(step, 1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Options options(data[0]);
  std::string input;
  if (options.begins) {
    if (options.role == H2Role::server) input += "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    input.append("\0\0\0\4\0\0\0\0\0\0\0\0\4\1\0\0\0\0", 18);
  }
  input.append(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = run(options, input, input.size());
  const std::string bytes = run(options, input, 1);
  const std::string parts = run(options, input, size / 3 + 1);
  if (!options.consumes) require(bytes == whole && parts == whole);
  return 0;
}
