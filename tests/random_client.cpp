#include "tests/random_client.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace weir::tests {
namespace {

constexpr std::size_t stalled_max = 40;  // per thread

std::string lines(int id, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += std::to_string(id) + "\n";
  return all;
}

std::string chunked(std::string_view text, std::size_t size) {
  std::string all = "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  static constexpr std::string_view digits = "0123456789abcdef";
  for (std::size_t at = 0; at < text.size(); at += size) {
    const std::string_view piece = text.substr(at, size);
    const std::size_t count = piece.size();
    all += {digits[count >> 8], digits[count >> 4 & 15], digits[count & 15]};
    all += "\r\n" + std::string(piece) + "\r\n";
  }
  return all + "0\r\n\r\n";
}

}  // namespace

RandomClientCounts& RandomClientCounts::operator+=(const RandomClientCounts& other) {
  clients += other.clients;
  refused += other.refused;
  requests += other.requests;
  answers += other.answers;
  faults.insert(faults.end(), other.faults.begin(), other.faults.end());
  return *this;
}

ExpectedRequest RandomClient::choose() {
  const auto id = static_cast<int>(below(100'000));
  const std::string number = std::to_string(id);
  switch (below(7)) {
    case 0: {
      const std::string slow = std::to_string(below(6));
      return {get("/slow/" + number + "/" + slow), "slow " + number + "\n"};
    }
    case 1: {
      const std::size_t count = one_in(8) ? 20'000 : below(50);
      return {get("/lines/" + number + "/" + std::to_string(count)), lines(id, count)};
    }
    case 2: {
      const std::string text(below(one_in(8) ? 60'000 : 300), static_cast<char>('a' + below(26)));
      if (one_in(2)) return {post("/echo", text), text};
      return {chunked(text, 1 + below(0xfff)), text};
    }
    case 3:
      return {get("/course/" + std::to_string(below(4))), "course\n", true};
    default:
      return {get("/number/" + number), "number " + number + "\n"};
  }
}

bool RandomClient::run_one() {
  auto client = Client::connect(server_);
  if (!client) {
    ++counts_.refused;
    return false;
  }
  ++counts_.clients;
  std::vector<ExpectedRequest> requests;
  std::string text;
  for (std::size_t left = one_in(4) ? 1 + below(60) : below(4); left > 0; --left) {
    requests.push_back(choose());
    text += requests.back().request;
  }
  counts_.requests += requests.size();
  // Most clients send the complete text.
  send(*client, std::string_view(text).substr(0, one_in(4) ? below(text.size() + 1) : text.npos));
  if (one_in(5)) client->finish_sending();
  if (stalled_.size() < stalled_max && one_in(3)) {
    stalled_.push_back({std::move(*client), std::move(requests)});
    return true;
  }
  if (!stalled_.empty() && one_in(3)) {
    std::swap(stalled_[below(stalled_.size())], stalled_.back());
    Stalled other = std::move(stalled_.back());
    stalled_.pop_back();
    finish(std::move(other.client), other.requests);
  }
  finish(std::move(*client), requests);
  return true;
}

// A server that drains, or waits until its answers are read, takes no more bytes. The client then
// stops sending.
void RandomClient::send(Client& client, std::string_view text) {
  client.set_timeout(std::chrono::milliseconds(20));
  const std::size_t size = one_in(3) ? 1 + below(2000) : text.size();
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, size);
    if (client.send_some(piece) < piece.size()) break;
    text.remove_prefix(piece.size());
  }
}

void RandomClient::finish(Client client, const std::vector<ExpectedRequest>& requests) {
  switch (below(4)) {
    case 0:
      return client.reset();
    case 1:
      return client.close();
    default:
      check_responses(requests, client);
      one_in(2) ? client.reset() : client.close();
  }
}

void RandomClient::check_responses(const std::vector<ExpectedRequest>& requests, Client& client) {
  // Most answers come in this time. A client that did not send everything may get none.
  client.set_timeout(std::chrono::milliseconds(50));
  for (const ExpectedRequest& each : requests) {
    const auto answer = client.read();
    if (!answer) {
      if (answer.error() == Errc::bad_input) counts_.faults.push_back("the answer is not HTTP");
      return;
    }
    const bool missing = each.may_be_missing && answer->status == 404;
    // The server or the route cancelled the request, or the client half-closed in a body.
    const bool given_up = answer->status == 503 || answer->status == 400;
    const bool right = answer->status == 200 && answer->body == each.body;
    if (!missing && !given_up && !right) {
      counts_.faults.push_back(each.request.substr(0, 60) + " is answered by " +
                               std::to_string(answer->status) + " " + answer->body.substr(0, 60));
      return;
    }
    ++counts_.answers;
  }
}

}  // namespace weir::tests
