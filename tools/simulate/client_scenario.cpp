// The server that closes connections, and the clients that use them.
#include "tools/simulate/client_scenario.hpp"

#include <chrono>
#include <utility>
#include <vector>

#include "weir/http/client/client.hpp"
#include "weir/net/listen/listener.hpp"
#include "weir/task/combinators.hpp"
#include "weir/task/sleep.hpp"

namespace weir::simulate {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
constexpr std::string_view head_end = "\r\n\r\n";

}  // namespace

/// Chooses the end of an exchange. The first exchange of a connection is whole, so that a request
/// on a new connection succeeds.
ClientScenario::Cut ClientScenario::draw_cut(bool first) {
  Cut cut{.read = std::string::npos, .written = answer.size()};
  if (first || !random_->bernoulli(options_.cut_share)) return cut;
  if (random_->bernoulli(0.5)) {
    cut = {.read = static_cast<std::size_t>(random_->below(60)), .written = 0};
  } else {
    cut.written = static_cast<std::size_t>(random_->below(answer.size()));
  }
  return cut;
}

/// Reads a head, or the part that the cut leaves.
/// Returns: true if the head is complete.
Task<bool> ClientScenario::receive(tcp::Stream& stream, std::string& input, const Cut& cut) {
  const Duration idle_timeout = random_->between(4995ms, 5005ms);
  while (input.find(head_end) == std::string::npos) {
    if (input.size() >= cut.read) co_return false;
    const auto piece = co_await stream.read({.timeout = idle_timeout});
    if (!piece) co_return false;
    input += piece->text();
  }
  co_return true;
}

Task<> ClientScenario::serve_connection(tcp::Stream stream) {
  ++connections_;
  for (bool first = true;; first = false) {
    const Cut cut = draw_cut(first);
    std::string input;
    const bool complete = co_await receive(stream, input, cut);
    // A head that has arrived counts, even if the server closes before it has read the whole head.
    if (!complete && input.find(head_end) == std::string::npos) co_return;
    const std::string line = input.substr(0, input.find("\r\n"));
    ++arrivals_[line];
    if (!complete) co_return;
    const bool whole = cut.written == answer.size();
    if (!whole && cut.written > 0) cut_responses_.insert(line);
    if (cut.written > 0) {
      const auto written = co_await stream.write(answer.substr(0, cut.written));
      if (!written) co_return;
    }
    if (!whole) co_return;
  }
}

Task<Result<>> ClientScenario::serve(Scope& scope) {
  WEIR_CO_TRY(auto listener, co_await tcp::listen(Endpoint::any(80)));
  while (true) {
    auto stream = co_await listener.accept();
    if (!stream && stream.error() == Errc::closed) co_return {};
    if (!stream) co_return fail(stream.error());
    scope.spawn(serve_connection(std::move(*stream)));
  }
}

/// Sends requests with a client of its own, so that each pause is the idle time of a connection.
Task<> ClientScenario::send_requests(unsigned worker) {
  http::ClientOptions options;
  options.limits.idle_timeout = 10s;  // the server closes first
  http::Client client(std::move(options));
  const std::string prefix = "/" + std::to_string(worker) + "/";
  for (unsigned number = 0; number < options_.requests; ++number) {
    const Duration pause = random_->between(4990ms, 5006ms);
    const auto slept = co_await sleep(pause);
    if (!slept) co_return;
    const bool posts = random_->below(4) == 0;
    const http::Method read = options_.retries ? http::Method::get : http::Method::patch;
    const http::Method method = posts ? http::Method::post : read;
    const std::string target = prefix + std::to_string(number);
    const std::string line = std::string(http::name_of(method)) + " " + target + " HTTP/1.1";
    auto response = co_await client.send(http::ClientRequest(method, "http://server" + target));
    std::string body;
    if (response) {
      const auto read_body = co_await response->body();
      if (read_body) body = *read_body;
    }
    if (body == "hello") {
      ++answered_;
    } else if (!body.empty()) {
      fail_with("a success with another body", line);
    } else if (posts) {
      ++lost_posts_;
    } else if (!cut_responses_.contains(line)) {
      fail_with("a failure that another connection would have avoided", line);
    }
  }
}

Task<Result<>> ClientScenario::ask(Scope&) {
  const auto slept = co_await sleep(1s);
  if (!slept) co_return slept;
  std::vector<Task<>> sending;
  for (unsigned worker = 0; worker < options_.workers; ++worker) {
    sending.push_back(send_requests(worker));
  }
  const auto done = co_await all(std::move(sending));
  if (!done) co_return fail(done.error());
  co_return {};
}

void ClientScenario::fail_with(std::string_view what, std::string_view line) {
  if (violation_.empty()) violation_ = std::string(what) + ": " + std::string(line);
}

std::string ClientScenario::find_violation() const {
  for (const auto& [line, count] : arrivals_) {
    if (line.starts_with("POST") && count > 1) return "a POST that arrived twice: " + line;
  }
  return violation_;
}

}  // namespace weir::simulate
