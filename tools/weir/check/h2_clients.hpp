// Honest clients of HTTP/2, which a server must not take for attackers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weir/check/check_target.hpp"

namespace weir::check {

/// The frames of a client up to its next wait.
struct H2Round {
  std::string frames;
  std::vector<std::uint32_t> answered;  ///< streams whose answers end the wait
  bool posts = false;                   ///< true: these streams send a POST, else a GET
};

/// A client sends its rounds one after the other.
struct H2Client {
  std::string_view name;
  std::string_view why;
  std::uint32_t rounds = 1;
  std::string begin;  ///< frames before the first round
  H2Round (*round)(const CheckTarget& target, std::uint32_t number) = nullptr;
};

/// Lifetime: as long as the process.
const std::vector<H2Client>& h2_clients();

}  // namespace weir::check
