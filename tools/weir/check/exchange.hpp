// One exchange of HTTP/1.1 with the server under test, on a connection of its own.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tools/weir/check/check_connection.hpp"
#include "tools/weir/check/check_target.hpp"
#include "weir/task/task.hpp"

namespace weir::check {

/// Returns the condition that ends with the final response number `count`, or after the timeout of
/// the target.
StopCondition until_final_responses(const CheckTarget& target, std::size_t count);

/// Returns a request for the target's `post_path` if the method is POST, else for its `path`.
/// `fields` are header lines with their line ends.
std::string request(const CheckTarget& target, std::string_view method, std::string_view fields,
                    std::string_view body = {});

struct Exchange {
  std::string sent;
  Outcome outcome;  ///< with what follows the responses
};

/// Sends `sent`, whose first request has this method, and receives `count` final responses. It then
/// ends sending, and receives for one more second at most.
/// Cancel: ends early.
Task<Exchange> exchange(const CheckTarget& target, std::string_view method, std::string sent,
                        std::size_t count);

}  // namespace weir::check
