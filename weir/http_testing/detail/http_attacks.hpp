// The behaviour of hostile clients of an HTTP server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::sim {

/// One kind of attack. The paths are those of examples/limits.cpp: `/` and `/large`, and `/count`
/// for a body.
struct HttpAttack {
  enum class EndAction : std::uint8_t { none, half_close, reset };

  std::string_view name;
  std::string initial_data = {};           ///< sent first, completely
  std::string repeated_data = {};          ///< sent repeatedly after it, as fast as possible
  bool is_slow = false;                    ///< true if repeated_data is sent at intervals
  std::size_t read_size = 1024;            ///< response bytes for each of its reads
  EndAction end_action = EndAction::none;  ///< after initial_data was sent
};

/// Returns all attacks, from silence to floods.
const std::vector<HttpAttack>& http_attacks();

}  // namespace weir::sim
