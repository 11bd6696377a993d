// The company of an attack: other clients, which a server must serve meanwhile.
#pragma once

#include <cstddef>
#include <string>

#include "tools/weir/check/check_target.hpp"
#include "weir/base/time.hpp"
#include "weir/task/task.hpp"

namespace weir::check {

/// What a client has observed that sends one GET after the other on a kept connection.
struct CompanyReport {
  std::size_t answers = 0;  ///< answers of the baseline
  Duration worst{};         ///< longest time from a GET to its answer
  std::string trouble;      ///< the first other outcome; empty: none
};

/// Sends `count` GETs one after the other.
/// Cancel: ends early.
Task<CompanyReport> observe_company(const CheckTarget& target, std::size_t count);

/// Sends GETs until `*running` is 0.
/// Cancel: ends early.
/// Lifetime: `running` outlives the task.
Task<CompanyReport> observe_company_while(const CheckTarget& target, const std::size_t& running);

/// Describes a duration in milliseconds: "12 ms".
std::string milliseconds(Duration length);

}  // namespace weir::check
