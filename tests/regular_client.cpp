#include "tests/regular_client.hpp"

#include <stdexcept>

#include "tests/process.hpp"

namespace weir::tests {
namespace {

bool is_right(const Response& answer, const std::string& body) {
  return answer.status == 200 && answer.body == body;
}

std::string describe(const Response& answer) {
  return std::to_string(answer.status) + " " + answer.body.substr(0, 80);
}

}  // namespace

RegularClient::RegularClient(std::uint16_t port) : client_(port) {
  // The server has accepted this client within its limits.
  if (const auto fault = ask(0); !fault.empty()) throw std::runtime_error(fault);
  thread_ = std::thread([this] { run(); });
}

std::string RegularClient::fault() const {
  const std::lock_guard lock(mutex_);
  return fault_;
}

void RegularClient::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void RegularClient::run() {
  for (std::size_t number = 0; !stopping_; ++number) {
    const std::string fault = ask(number);
    if (!fault.empty()) {
      const std::lock_guard lock(mutex_);
      fault_ = fault;
      return;
    }
    pause_between_polls();
  }
}

/// Returns the failure of the answers, or an empty string.
std::string RegularClient::ask(std::size_t number) {
  const std::string text(number % 5000, 'x');
  const auto counted = client_.exchange(post("/count", text));
  if (!counted) return "no answer to a POST: " + counted.error().message();
  if (!is_right(*counted, std::to_string(text.size()) + " bytes\n")) return describe(*counted);
  const auto greeted = client_.pipeline(get("/"), 10);
  if (!greeted) return "no answer to a pipeline: " + greeted.error().message();
  for (const Response& each : *greeted) {
    if (!is_right(each, "Hello, World!\n")) return describe(each);
  }
  answered_ += 11;
  return {};
}

}  // namespace weir::tests
