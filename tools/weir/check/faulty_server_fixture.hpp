// A small HTTP server with selectable faults, for tests of the code that finds them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/detail/h1/chunked.hpp"
#include "weir/http/detail/h1/parser.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/task/scope.hpp"
#include "weir/task/timeout.hpp"

namespace weir::check {

/// The faults of the server. It is correct without any.
struct Faults {
  bool takes_bare_lf = false;
  bool takes_both_lengths = false;  ///< uses Transfer-Encoding and stays open
  bool swaps_answers = false;
  bool never_times_out = false;
  bool body_to_head = false;
  bool stays_open = false;  ///< after Connection: close
  bool reads_on = false;    ///< accepts requests after an error
  bool echoes_target = false;
  bool lacks_date = false;
  bool never_continues = false;
  bool dies_of_nul = false;
  bool lacks_allow = false;  ///< in the answers with 405
  bool cuts_early = false;   ///< closes after an error without reading on, which is a reset
};

/// One connection of the server.
class FaultyConnection {
 public:
  FaultyConnection(tcp::Stream stream, const Faults& faults)
      : stream_(std::move(stream)), faults_(faults) {}

  /// Serves until the end of the connection. Returns false if the server has died.
  Task<bool> run() {
    const Context context = co_await this_context();
    Instant idle_deadline = after(context.loop->platform().now(), idle_timeout);
    while (!closing_) {
      const Duration left = faults_.never_times_out
                                ? Duration(std::chrono::hours(24))
                                : idle_deadline - context.loop->platform().now();
      const auto input = co_await timeout(left, stream_.read());
      if (!input) {
        if (input.error() == Errc::timed_out) answer(408, "slow\n");
        closing_ = true;
      } else {
        if (faults_.dies_of_nul && input->text().contains('\0')) co_return false;
        take(input->text());
      }
      if (answers_.empty()) continue;
      if (faults_.swaps_answers) swap_answers();
      std::string output;
      for (const std::string& each : std::exchange(answers_, {})) output += each;
      const auto written = co_await timeout(idle_timeout, stream_.write(output));
      if (!written || (closing_ && faults_.cuts_early)) co_return true;
      idle_deadline = after(context.loop->platform().now(), idle_timeout);
    }
    static_cast<void>(stream_.finish_writing());
    for (bool is_open = true; is_open;) {
      const auto dropped = co_await timeout(std::chrono::seconds(1), stream_.read());
      is_open = dropped.has_value();
    }
    co_return true;
  }

 private:
  static constexpr Duration idle_timeout = std::chrono::seconds(10);
  static constexpr std::uint64_t body_max = 1 << 20;

  void take(std::string_view input) {
    for (const char each : input) {
      const bool bare = each == '\n' && (input_.empty() || input_.back() != '\r');
      if (bare && faults_.takes_bare_lf) input_ += '\r';
      input_ += each;
    }
    while (!closing_ && step()) {
    }
  }

  bool step() {
    if (!in_body_) return read_head();
    if (chunked_) return read_chunks();
    const std::size_t size = std::min<std::uint64_t>(left_, input_.size());
    input_.erase(0, size);
    left_ -= size;
    if (left_ != 0) return false;
    finish();
    return true;
  }

  bool read_head() {
    if (faults_.takes_both_lengths) drop_length();
    const http::ParseResult result = parser_.parse(input_, head_);
    if (result.kind == http::ParseResult::Kind::incomplete) return false;
    if (result.kind == http::ParseResult::Kind::error) {
      const std::size_t end = input_.find("\r\n\r\n");
      input_.erase(0, end == input_.npos ? end : end + 4);
      refuse(code_of(to_status(result.error)));
      return true;
    }
    in_body_ = true;
    chunked_ = head_.chunked();
    left_ = head_.content_length();
    keep_ = head_.keep_alive() || faults_.stays_open;
    to_head_ = head_.method() == http::Method::head;
    target_ = head_.target();
    const bool allowed =
        head_.method() != http::Method::other && head_.method() != http::Method::trace;
    status_ = allowed ? status_of(head_.path()) : 405;
    const bool waits = head_.expects_continue() && head_.has_body();
    if (waits && !faults_.never_continues) answers_.emplace_back("HTTP/1.1 100 Continue\r\n\r\n");
    input_.erase(0, result.consumed);
    if (left_ > body_max) refuse(413);
    return true;
  }

  /// Removes Content-Length when the head is complete, and before the parser sees it.
  void drop_length() {
    const std::size_t end = input_.find("\r\n\r\n");
    if (parser_.started() || end == input_.npos) return;
    const std::size_t length = input_.find("Content-Length:");
    if (length < end && input_.find("Transfer-Encoding:") < end) {
      input_.erase(length, input_.find("\r\n", length) + 2 - length);
    }
  }

  static int status_of(std::string_view path) {
    if (path == "/299" || path == "/300") return path == "/299" ? 299 : 300;
    return path == "/" ? 200 : 404;
  }

  bool read_chunks() {
    using Kind = http::ChunkedDecoder::Step::Kind;
    const http::ChunkedDecoder::Step step = chunks_.next(input_);
    input_.erase(0, step.consumed);
    if (step.kind == Kind::error) refuse(400);
    if (step.kind == Kind::end) finish();
    return step.kind != Kind::need_more;
  }

  void finish() {
    in_body_ = false;
    chunks_.reset();
    answer(status_, "hello\n");
    closing_ = !keep_;
  }

  void refuse(int status) {
    keep_ = faults_.reads_on;
    to_head_ = in_body_ = false;
    answer(status, "no\n");
    parser_.reset();
    chunks_.reset();
    closing_ = !keep_;
  }

  void answer(int status, std::string_view body) {
    std::string text = "HTTP/1.1 " + std::to_string(status) + " Such\r\n";
    if (!faults_.lacks_date) text += "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n";
    if (!keep_) text += "Connection: close\r\n";
    if (status == 405 && !faults_.lacks_allow) text += "Allow: GET, HEAD, POST\r\n";
    if (faults_.echoes_target) {
      text += "Location: " + http::percent_decode(target_).value_or("") + "\r\n";
    }
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    if (!to_head_ || faults_.body_to_head) text += body;
    answers_.push_back(std::move(text));
  }

  void swap_answers() {
    for (std::size_t index = 1; index < answers_.size(); index += 2) {
      std::swap(answers_[index - 1], answers_[index]);
    }
  }

  tcp::Stream stream_;
  const Faults& faults_;
  std::string input_;
  std::vector<std::string> answers_;
  http::HeadParser parser_;
  http::RequestHead head_;
  http::ChunkedDecoder chunks_;
  std::string target_;
  std::uint64_t left_ = 0;
  int status_ = 0;
  bool in_body_ = false;
  bool chunked_ = false;
  bool keep_ = false;
  bool to_head_ = false;
  bool closing_ = false;
};

/// Serves GET and POST of "/" until it is cancelled or has died. A request for "/299" or
/// "/300" gets the status that its path names.
class FaultyServer {
 public:
  explicit FaultyServer(const Faults& faults) noexcept : faults_(faults) {}

  Task<> serve(Scope& scope, tcp::Listener listener) {
    while (!dead_) {
      auto stream = co_await listener.accept();
      if (!stream) break;
      if (!dead_) scope.spawn(serve_one(std::move(*stream)));
    }
  }

 private:
  Task<> serve_one(tcp::Stream stream) {
    FaultyConnection connection(std::move(stream), faults_);
    const bool is_alive = co_await connection.run();
    if (!is_alive) dead_ = true;
  }

  Faults faults_;
  bool dead_ = false;
};

}  // namespace weir::check
