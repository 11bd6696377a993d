#include "tools/weir/check/company.hpp"

#include <algorithm>
#include <optional>

#include "tools/weir/check/check_connection.hpp"
#include "weir/task/sleep.hpp"

namespace weir::check {
namespace {

using namespace std::chrono_literals;

constexpr Duration pause = 2ms;  // a client that sends without a pause would be an attack
// ResponseParser::responses_max of a connection, less some.
constexpr std::size_t answers_per_connection = 500;

/// A client that keeps its connection.
class Companion {
 public:
  explicit Companion(const CheckTarget& target) noexcept : target_(target) {}

  /// Sends one GET, and waits for the pause.
  /// Cancel: ends early.
  Task<> ask(CompanyReport& report) {
    const bool opened = co_await prepare();
    if (!opened) {
      if (report.trouble.empty()) report.trouble = describe(connection_->outcome());
    } else {
      co_await exchange(report);
    }
    const auto slept = co_await sleep(pause);
    static_cast<void>(slept);
  }

 private:
  Task<bool> prepare() {
    const bool spent = !connection_ || connection_->is_closed() ||
                       connection_->final_count() >= answers_per_connection;
    if (!spent) co_return true;
    connection_.emplace(target_);
    co_return co_await connection_->open();
  }

  Task<> exchange(CompanyReport& report) {
    const Context context = co_await this_context();
    StopCondition until;
    until.final_count = connection_->final_count() + 1;
    until.wait_timeout = target_.timeout;
    const Instant begin = context.loop->platform().now();
    const std::string request = get_request(target_);
    co_await connection_->send_and_receive(request, until);
    report.worst = std::max(report.worst, context.loop->platform().now() - begin);
    const Outcome outcome = connection_->outcome();
    const bool answered = outcome.final_count == until.final_count;
    const bool right = answered && outcome.responses.back().status == target_.get.status;
    if (right) {
      ++report.answers;
      if (outcome.responses.back().closes) connection_.reset();
    } else {
      if (report.trouble.empty()) report.trouble = describe(outcome);
      connection_.reset();
    }
  }

  const CheckTarget& target_;
  std::optional<CheckConnection> connection_;
};

}  // namespace

Task<CompanyReport> observe_company(const CheckTarget& target, std::size_t count) {
  CompanyReport report;
  Companion companion(target);
  for (; count > 0; --count) co_await companion.ask(report);
  co_return report;
}

Task<CompanyReport> observe_company_while(const CheckTarget& target, const std::size_t& running) {
  const Context context = co_await this_context();
  CompanyReport report;
  Companion companion(target);
  while (running != 0 && !context.cancelled()) co_await companion.ask(report);
  co_return report;
}

std::string milliseconds(Duration length) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(length).count()) +
         " ms";
}

}  // namespace weir::check
