// The server that gets parts of requests, and the clients that send them.
#include "tools/simulate/http2_cut_scenario.hpp"

#include <array>
#include <bitset>
#include <chrono>
#include <functional>
#include <string_view>
#include <utility>

#include "weir/http/detail/h2/frame.hpp"
#include "weir/http/detail/h2/hpack_encoder.hpp"
#include "weir/http/detail/h2/session.hpp"
#include "weir/http/matching/arguments.hpp"
#include "weir/http/server/serve.hpp"
#include "weir/runtime/runtime.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/sleep.hpp"

namespace weir::simulate {
namespace {

using namespace std::chrono_literals;
using http::FrameFlag;
using http::FrameType;

// The digits 0 and 1 are equally long in HPACK, so each head has the same size.
constexpr std::size_t number_bits = 12;
constexpr std::string_view answer = "the body is complete";
// Longer than each timeout of the server.
constexpr Duration patience = 100s;

std::string frame(FrameType type, std::uint8_t flags, std::uint32_t stream,
                  std::string_view payload) {
  std::string out(http::frame_header_size, '\0');
  const auto size = static_cast<std::uint32_t>(payload.size());
  http::write_frame_header({size, type, flags, stream}, out.data());
  return out.append(payload);
}

std::string field(std::string_view name, std::string_view value) {
  std::string out(http::hpack_field_size_max(name, value), '\0');
  out.resize(
      static_cast<std::size_t>(http::write_hpack_field(name, value, out.data()) - out.data()));
  return out;
}

std::string block(std::string_view method, std::string_view path) {
  return field(":method", method) + field(":scheme", "http") + field(":path", path) +
         field(":authority", "server");
}

Task<http::Response> wait_a_second() {
  const auto slept = co_await sleep(1s);
  if (!slept) co_return http::Response(http::Status::service_unavailable);
  co_return http::text("late");
}

}  // namespace

Http2CutScenario::Http2CutScenario(sim::Random& random, const Http2CutScenarioOptions& options)
    : random_(random), options_(options) {
  constexpr std::array targets{"/whole/", "/pieces/", "/json/", "/unread/"};
  target_ = random.one_of(targets);
  with_other_ = random.bernoulli(0.5);
  draw_body(random);
  begin_ = head_of(0).size();
  requests_.resize(request_of(0).size() + 1);
}

/// Draws a JSON text with spaces behind it, so that it is valid before its end, and its frames.
void Http2CutScenario::draw_body(sim::Random& random) {
  const std::uint32_t stream = with_other_ ? 3 : 1;
  content_ = '"' + std::string(random.below(40), 'x') + '"' + std::string(random.below(20), ' ');
  if (random.bernoulli(0.5)) content_length_ = std::to_string(content_.size());
  const bool trailers = random.bernoulli(0.3);
  for (std::string_view rest = content_; !rest.empty();) {
    const std::size_t size = 1 + random.below(random.bernoulli(0.3) ? 3 : rest.size());
    const std::string part(rest.substr(0, size));
    rest.remove_prefix(part.size());
    const bool ends = rest.empty() && !trailers && random.bernoulli(0.7);
    std::uint8_t flags = ends ? FrameFlag::end_stream : 0;
    const auto padding = static_cast<char>(random.below(10));
    if (random.bernoulli(0.3)) {
      flags |= FrameFlag::padded;
      body_ += frame(FrameType::data, flags, stream,
                     padding + part + std::string(static_cast<std::size_t>(padding), '\0'));
      if (ends) padding_ = static_cast<std::size_t>(padding);
    } else {
      body_ += frame(FrameType::data, flags, stream, part);
    }
    if (ends) return;
    if (random.bernoulli(0.2)) body_ += frame(FrameType::ping, 0, 0, "8 bytes.");
  }
  if (!trailers) {
    body_ += frame(FrameType::data, FrameFlag::end_stream, stream, {});
    return;
  }
  const std::string fields = field("x-sum", "12345");
  const std::size_t first = random.below(fields.size());
  body_ += frame(FrameType::headers, FrameFlag::end_stream, stream, fields.substr(0, first));
  body_ += frame(FrameType::continuation, FrameFlag::end_headers, stream, fields.substr(first));
}

/// Returns the bytes until the end of the head of a request.
std::string Http2CutScenario::head_of(std::size_t number) const {
  std::string out(http::H2Session::client_preface);
  out += frame(FrameType::settings, 0, 0, {});
  constexpr std::uint8_t ends = FrameFlag::end_headers | FrameFlag::end_stream;
  if (with_other_) out += frame(FrameType::headers, ends, 1, block("GET", "/late"));
  std::string fields = block("POST", target_);
  fields += field("x-number", std::bitset<number_bits>(number).to_string());
  if (!content_length_.empty()) fields += field("content-length", content_length_);
  return out + frame(FrameType::headers, FrameFlag::end_headers, with_other_ ? 3 : 1, fields);
}

std::string Http2CutScenario::request_of(std::size_t number) const {
  return head_of(number) + body_;
}

// --- the server ----------------------------------------------------------------------------------

/// Records what a handler sees. It counts as failed unless end() is called.
class Http2CutScenario::Running {
 public:
  Running(Http2CutScenario& scenario, const http::Request& request)
      : scenario_(scenario),
        number_(std::bitset<number_bits>(std::string(request.header("x-number").value_or("")))
                    .to_ulong()) {
    ++scenario_.running_;
    Cut& cut = scenario_.requests_[number_];
    if (std::exchange(cut.began, true)) scenario_.fail_with(number_, "two handlers");
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    --scenario_.running_;
    Cut& cut = scenario_.requests_[number_];
    if (cut.complete) return;
    cut.failed = true;
    ++scenario_.failed_;
  }
  /// Ends with a whole body.
  http::Response end(std::string_view body) {
    scenario_.requests_[number_].complete = true;
    ++scenario_.complete_;
    if (body != scenario_.content_) scenario_.fail_with(number_, "another body");
    return http::text(std::string(answer));
  }

 private:
  Http2CutScenario& scenario_;
  std::size_t number_;
};

int Http2CutScenario::serve(loop::Platform& host) {
  http::Router routes;
  routes.get("/late", wait_a_second);
  routes.post("/whole/", [this](http::Request& request) -> Task<http::Response> {
    Running running(*this, request);
    const auto body = co_await request.body();
    if (!body) co_return http::Response(body.error());
    co_return running.end(*body);
  });
  routes.post("/pieces/", [this](http::Request& request) -> Task<http::Response> {
    Running running(*this, request);
    std::string body;
    for (;;) {
      const auto piece = co_await request.read();
      if (!piece) co_return http::Response(piece.error());
      if (piece->empty()) co_return running.end(body);
      body += to_text(*piece);
    }
  });
  routes.post("/json/", [this](http::Request& request, http::Json<std::string> body) {
    Running running(*this, request);
    const std::string text = '"' + *body + '"';
    return running.end(content_.starts_with(text) ? content_ : text);
  });
  routes.post("/unread/", [] { return http::text(std::string(answer)); });
  const http::ServeOptions serving{.endpoint = Endpoint::any(80),
                                   .plain_http2 = http::PlainHttp2::only};
  Runtime runtime(host, {.cores = options_.cores, .announce = false});
  return runtime.run_on_each_core(http::serve, std::cref(routes), serving);
}

// --- the clients ---------------------------------------------------------------------------------

Task<Result<>> Http2CutScenario::ask(Scope&, Endpoint server) {
  const auto slept = co_await sleep(1s);
  if (!slept) co_return slept;
  std::vector<Task<>> tasks;
  for (unsigned worker = 0; worker < options_.workers; ++worker) {
    tasks.push_back(send_prefixes(server));
  }
  const auto all_left = co_await all(std::move(tasks));
  if (!all_left) co_return fail(all_left.error());
  done_ = true;
  co_return {};
}

Task<> Http2CutScenario::send_prefixes(Endpoint server) {
  while (next_ < requests_.size()) co_await send_prefix(server, next_++);
}

/// Sends the first `size` bytes of a request, and leaves.
Task<> Http2CutScenario::send_prefix(Endpoint server, std::size_t size) {
  constexpr std::array ways{Leaving::close, Leaving::close_side, Leaving::silence};
  const Leaving way = requests_[size].way = random_.one_of(ways);
  const std::string request = request_of(size);
  const std::string_view bytes = std::string_view(request).substr(0, size);
  const CutAnswer got = co_await send_and_leave(random_, server, bytes, way, patience);
  if (!got.violation.empty()) fail_with(size, got.violation);
  if (!got.received) co_return;
  const bool answered = got.received->contains(answer);
  if (answered && size + padding_ < request.size()) fail_with(size, "a success without the body");
  const bool must_answer = way == Leaving::silence && size == request.size();
  if (must_answer && !answered) fail_with(size, "a whole request has no answer");
}

void Http2CutScenario::fail_with(std::size_t number, const std::string& what) {
  if (!violation_.empty()) return;
  violation_ = target_ + " after " + std::to_string(number) + " of " +
               std::to_string(requests_.size() - 1) + " bytes: " + what;
}

std::string Http2CutScenario::find_violation() const {
  if (!violation_.empty()) return violation_;
  if (running_ != 0) return std::to_string(running_) + " handlers still run";
  const std::size_t whole = requests_.size() - 1;
  for (std::size_t number = 0; number < requests_.size(); ++number) {
    const Cut& cut = requests_[number];
    const std::string where =
        target_ + " after " + std::to_string(number) + " of " + std::to_string(whole) + " bytes: ";
    if (cut.complete && number + padding_ < whole) return where + "a handler has a whole body";
    if (cut.began && number < begin_) return where + "a handler has begun without a whole head";
    if (cut.failed && number == whole && cut.way == Leaving::silence)
      return where + "the body failed";
    // The server reads all bytes before the end of a connection that is not reset.
    const bool reads = target_ == "/whole/" || target_ == "/pieces/";
    const bool must_begin = reads && number >= begin_ && cut.way != Leaving::close;
    if (must_begin && !cut.began) return where + "no handler has begun";
  }
  return {};
}

}  // namespace weir::simulate
