#include "tests/random_client.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace weir::tests {
namespace {

constexpr std::size_t stalled_max = 40;  // of each thread

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

WandererCounts& WandererCounts::operator+=(const WandererCounts& other) {
  clients += other.clients;
  refused += other.refused;
  requests += other.requests;
  answers += other.answers;
  faults.insert(faults.end(), other.faults.begin(), other.faults.end());
  return *this;
}

WandererAsks Wanderer::choose() {
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

bool Wanderer::send_one() {
  auto client = Client::connect(server_);
  if (!client) {
    ++counts_.refused;
    return false;
  }
  ++counts_.clients;
  std::vector<WandererAsks> asked;
  std::string text;
  for (std::size_t left = one_in(4) ? 1 + below(60) : below(4); left > 0; --left) {
    asked.push_back(choose());
    text += asked.back().request;
  }
  counts_.requests += asked.size();
  // All of it, mostly.
  send(*client, std::string_view(text).substr(0, one_in(4) ? below(text.size() + 1) : text.npos));
  if (one_in(5)) client->finish_sending();
  if (stalled_.size() < stalled_max && one_in(3)) {
    stalled_.push_back({std::move(*client), std::move(asked)});
    return true;
  }
  if (!stalled_.empty() && one_in(3)) {
    std::swap(stalled_[below(stalled_.size())], stalled_.back());
    Stalled other = std::move(stalled_.back());
    stalled_.pop_back();
    finish(std::move(other.client), other.asked);
  }
  finish(std::move(*client), asked);
  return true;
}

// A server that is drained, or waits for somebody to read, takes no more of it: then that is all.
void Wanderer::send(Client& client, std::string_view text) {
  client.set_patience(std::chrono::milliseconds(20));
  const std::size_t size = one_in(3) ? 1 + below(2000) : text.size();
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, size);
    if (client.send_some(piece) < piece.size()) break;
    text.remove_prefix(piece.size());
  }
}

void Wanderer::finish(Client client, const std::vector<WandererAsks>& asked) {
  switch (below(4)) {
    case 0:
      return client.reset();
    case 1:
      return client.close();
    default:
      judge(asked, client);
      one_in(2) ? client.reset() : client.close();
  }
}

void Wanderer::judge(const std::vector<WandererAsks>& asked, Client& client) {
  // Long enough for most answers; who is not answered because not all was sent need not wait.
  client.set_patience(std::chrono::milliseconds(50));
  for (const WandererAsks& each : asked) {
    const auto answer = client.read();
    if (!answer) {
      if (answer.error() == Errc::bad_input) counts_.faults.push_back("what came is no HTTP");
      return;
    }
    const bool missing = each.may_be_missing && answer->status == 404;
    // Cancelled with the server, or with its route; or the connection was half-closed in a body.
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
