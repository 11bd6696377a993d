// What peers that mean an HTTP server ill do with their connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

/// One kind of attacker. They ask for what examples/limits.cpp has: / and /large, and /count of a
/// body.
struct HttpAttack {
  enum class Then : std::uint8_t { stays, half_closes, resets };

  std::string_view name;
  std::string opening = {};  ///< is sent first, all of it
  std::string more = {};     ///< then this, again and again: as fast as it goes, or
  bool slowly = false;       ///< once in a while
  std::size_t takes = 1024;  ///< bytes of answers that it reads now and then
  Then then = Then::stays;   ///< once the opening has left
};

/// Everything between silence and floods.
const std::vector<HttpAttack>& every_http_attack();

}  // namespace weir
