// Cases about uploads over HTTP/2: early answers, and DATA for streams that have ended.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/weir/check/case_registry.hpp"
#include "tools/weir/check/h2_requests.hpp"
#include "tools/weir/check/h2_wire.hpp"
#include "tools/weir/check/scripts.hpp"

namespace weir::check {
namespace {

using http::FrameFlag;
using http::FrameType;
using std::chrono_literals::operator""s;

constexpr std::string_view missing_path = "/weir-check-there-is-no-such-thing";

/// Returns DATA of `size` bytes in frames of at most `frame_size`.
std::string data_frames(std::uint32_t stream, std::size_t size, std::size_t frame_size) {
  std::string frames;
  for (std::size_t left = size; left > 0; left -= std::min(left, frame_size)) {
    frames += h2_frame(FrameType::data, 0, stream, std::string(std::min(left, frame_size), 'd'));
  }
  return frames;
}

/// Returns the head of a POST to a path that does not exist.
std::string missing_post(const CheckTarget& target, std::uint32_t stream,
                         const std::vector<H2Field>& more = {}) {
  CheckTarget elsewhere;
  elsewhere.authority = target.authority;
  elsewhere.tls = target.tls;
  elsewhere.post_path = missing_path;
  return h2_post(elsewhere, stream, more);
}

// ---- Early answers ------------------------------------------------------------------------------

/// Sends a part of a body that never ends, to a path whose answer does not depend on it.
Task<Verdict> check_early_answer(const CheckTarget& target, const Case&) {
  const std::string expected = "the complete answer, without the rest of the body";
  const std::string bytes = h2_begin() +
                            missing_post(target, 1, {{"content-length", "1099511627776"}}) +
                            data_frames(1, 32 * 1024, http::frame_payload_default);
  const H2Wire::Done done = [](const H2Answers& answers) {
    return answers.goaway() || answers.on(1).complete();
  };
  H2Wire wire(target);
  const bool opened = co_await wire.open();
  if (opened) co_await wire.exchange(bytes, done, target.timeout);
  if (auto verdict = wire.verdict_without_h2(expected)) co_return *std::move(verdict);
  const H2Answer& answer = wire.answers().on(1);
  if (answer.status >= 200 && answer.ended)
    co_return with_sent(passed(expected, wire.describe()), bytes);
  // A server may wait for the whole request (RFC 9113 8.1), but it may not lose its answer.
  const bool waits = answer.status == 0 && !answer.reset && !wire.is_closed();
  if (!waits) co_return with_sent(failed(expected, wire.describe()), bytes);
  co_return with_sent(lenient_verdict(target, expected, wire.describe()), bytes);
}

// ---- The window of the connection ---------------------------------------------------------------

/// A case sends the same frames on many streams, and keeps to the window of the connection.
struct UploadCase {
  std::string_view name;
  std::string_view why;
  /// Returns the frames of one stream, with `size` bytes of DATA.
  std::string (*frames)(const CheckTarget& target, std::uint32_t stream, std::size_t size);
};

constexpr std::array window_cases{
    UploadCase{"window-ended", "DATA behind the end of requests",
               [](const CheckTarget& target, std::uint32_t stream, std::size_t size) {
                 return h2_get(target, stream) +
                        data_frames(stream, size, http::frame_payload_default);
               }},
    UploadCase{"window-reset", "DATA of requests that the client resets",
               [](const CheckTarget& target, std::uint32_t stream, std::size_t size) {
                 return h2_post(target, stream) +
                        data_frames(stream, size, http::frame_payload_default) +
                        h2_rst_stream(stream);
               }},
    UploadCase{"window-unread", "DATA of requests whose answers do not need it",
               [](const CheckTarget& target, std::uint32_t stream, std::size_t size) {
                 return missing_post(target, stream) +
                        data_frames(stream, size, http::frame_payload_default) +
                        h2_rst_stream(stream);
               }},
};
constexpr std::uint64_t window_max = std::uint64_t{4} << 20;  // a larger one hides a leak
constexpr std::size_t upload_bytes = 32 * 1024;               // per stream, below h2_window_default

/// An Upload sends as much DATA as the window of the connection allows.
class Upload {
 public:
  explicit Upload(const CheckTarget& target) noexcept : target_(target), wire_(target) {}

  H2Wire& wire() noexcept { return wire_; }
  std::uint64_t sent() const noexcept { return sent_; }
  std::uint64_t window() const noexcept { return h2_window_default + wire_.answers().granted(); }

  /// Connects, and waits for the answer to a GET, by which time the server has set its window.
  /// Cancel: ends early.
  Task<> begin() {
    const H2Wire::Done done = [](const H2Answers& answers) {
      return answers.goaway() || answers.on(1).complete();
    };
    const bool opened = co_await wire_.open();
    if (opened) co_await wire_.exchange(h2_begin() + h2_get(target_, 1), done, target_.timeout);
  }
  /// Waits until the window has room for `size` bytes, and sends `frames`, which have so many.
  /// Returns: false if the window stays closed for the timeout of the target, or the server ends.
  /// Cancel: returns false.
  Task<bool> send(std::string_view frames, std::size_t size) {
    const std::uint64_t needed = sent_ + size;
    const H2Wire::Done done = [needed](const H2Answers& answers) {
      return answers.goaway() || h2_window_default + answers.granted() >= needed;
    };
    co_await wire_.exchange({}, done, target_.timeout);
    if (ended() || window() < needed) co_return false;
    sent_ = needed;
    co_return co_await wire_.send(frames, target_.timeout);
  }
  bool ended() const noexcept { return wire_.is_closed() || wire_.answers().goaway(); }

 private:
  const CheckTarget& target_;
  H2Wire wire_;
  std::uint64_t sent_ = 0;  // bytes of DATA
};

/// Checks that DATA which no request needs returns to the window of the connection, which all of
/// its streams share (RFC 9113 6.9).
Task<Verdict> check_window(const CheckTarget& target, const Case& test_case) {
  const std::string expected = "the window of the connection opens again, or the connection ends";
  const std::string_view name = std::string_view(test_case.name).substr(sizeof("http2"));
  const UploadCase& row = *std::ranges::find(window_cases, name, &UploadCase::name);
  Upload upload(target);
  co_await upload.begin();
  if (auto verdict = upload.wire().verdict_without_h2(expected)) co_return *std::move(verdict);
  const std::uint64_t window = upload.window();
  if (window > window_max) {
    co_return not_applicable(
        expected, "a window of " + std::to_string(window >> 20U) + " MiB, which would hide a loss");
  }
  const std::size_t size =
      std::min<std::size_t>(upload_bytes, upload.wire().answers().initial_window());
  if (size == 0) co_return not_applicable(expected, "the windows of new streams are closed");
  std::string bytes = row.frames(target, 3, size);
  bool going = true;
  for (std::uint32_t stream = 3; going && upload.sent() < window + 2 * upload_bytes; stream += 2) {
    const std::string frames = row.frames(target, stream, size);
    going = co_await upload.send(frames, size);
  }
  const std::string actual = std::to_string(upload.sent() >> 10U) + " KiB sent at a window of " +
                             std::to_string(window >> 10U) + " KiB";
  if (going) co_return with_sent(passed(expected, actual), bytes);
  const std::string end = upload.wire().describe(3);
  const bool right = upload.ended();
  co_return with_sent(right ? passed(expected, actual + ", then " + end)
                            : failed(expected, actual + ", then it stays closed"),
                      bytes);
}

// ---- Resets that small DATA pays for ------------------------------------------------------------

constexpr std::uint32_t reset_streams = 5'000;
constexpr std::uint32_t streams_per_round = 16;
constexpr std::size_t small_frame = 256;
constexpr std::size_t small_data = 12 * small_frame;  // bytes of DATA per stream

/// Sends requests with small frames of DATA, each of which the client resets. DATA must not pay for
/// them: the requests cost the server as much as those of Rapid Reset.
Task<Verdict> check_paid_resets(const CheckTarget& target, const Case&) {
  const std::string expected = "the end of the connection, or a delay";
  const Context context = co_await this_context();
  Upload upload(target);
  co_await upload.begin();
  if (auto verdict = upload.wire().verdict_without_h2(expected)) co_return *std::move(verdict);
  const Instant deadline = after(context.loop->platform().now(), target.timeout);
  std::string first;
  std::uint32_t stream = 3;
  bool going = true;
  while (going && stream < 2 * reset_streams && context.loop->platform().now() < deadline) {
    std::string round;
    for (std::uint32_t left = streams_per_round; left > 0; --left, stream += 2) {
      round += h2_post(target, stream) + data_frames(stream, small_data, small_frame) +
               h2_rst_stream(stream);
    }
    if (first.empty()) first = round;
    going = co_await upload.send(round, streams_per_round * small_data);
  }
  const bool complete = going && stream >= 2 * reset_streams;
  if (complete) {  // the server may still delay what it has received
    const H2Wire::Done answered = [](const H2Answers& answers) {
      return answers.goaway() || answers.pings() != 0;
    };
    const Duration left = deadline - context.loop->platform().now();
    co_await upload.wire().exchange(h2_ping(), answered, std::max<Duration>(left, 1s));
  }
  const bool served = complete && upload.wire().answers().pings() != 0 && !upload.ended();
  const std::string actual = std::to_string(stream / 2) + " requests, " + upload.wire().describe();
  co_return with_sent(served ? failed(expected, actual) : passed(expected, actual), first);
}

}  // namespace

void add_h2_upload_scripts(CaseRegistry& registry) {
  registry.add("http2", "early-answer", "a part of an upload to a path that does not exist",
               check_early_answer);
  for (const UploadCase& each : window_cases) {
    registry.add("http2", each.name, each.why, check_window);
  }
  registry.add("http2", "flood-paid-resets",
               "5,000 requests with small DATA that the client resets", check_paid_resets);
}

}  // namespace weir::check
