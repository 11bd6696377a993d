// Random configurations: a file, an environment and arguments, with the values that they give.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weir/config/config.hpp"
#include "weir/sim/detail/random.hpp"

namespace weir::simulate {

enum class ServiceMode : std::uint8_t { fast, safe };

struct ServiceLimits {
  ByteSize body_max = 64_KiB;
  std::uint16_t connections_max = 1000;
  std::chrono::milliseconds patience{250};
};

struct ServicePeer {
  std::string name;
  Endpoint address;
};

/// A configuration with fields of every kind.
struct ServiceConfig {
  std::string name = "weir";
  bool verbose = false;
  std::int8_t offset = -1;
  std::uint64_t seed = 7;
  double ratio = 0.5;
  ServiceMode mode = ServiceMode::fast;
  std::optional<std::int32_t> level;
  Duration idle_timeout = std::chrono::seconds(30);
  std::vector<std::string> tags = {"first"};
  std::map<std::string, std::int32_t> weights = {{"sky", 1}};
  std::vector<ServicePeer> peers;
  ServiceLimits limits;
};

/// Returns all fields as a text, for comparisons and messages.
std::string to_text(const ServiceConfig& config);

/// An error that a load must report.
struct ExpectedError {
  std::string source;  ///< the whole source; of a file, with line and column
  std::string key;
  std::string what;  ///< beginning of the description

  auto operator<=>(const ExpectedError&) const = default;
};

struct ConfigInputOptions {
  double wrong = 0.04;     ///< probability that a value is wrong
  bool only_file = false;  ///< true: no environment and no arguments
};

/// A ConfigInput is the content of all sources, and the result of loading them. The result follows
/// from the choices of values; nothing is parsed.
struct ConfigInput {
  static constexpr const char* path = "/service.toml";

  /// Draws sources. The values of the file come first, and those of the arguments last.
  static ConfigInput draw(sim::Random& random, const ConfigInputOptions& options);
  /// Draws another file for the environment and the arguments of `other`.
  static ConfigInput draw_file(sim::Random& random, const ConfigInput& other, double wrong);

  std::string file;
  std::vector<std::string> environment;
  std::vector<std::string> arguments;
  ServiceConfig expected;
  std::vector<ExpectedError> errors;  ///< sorted
  /// The changes by the environment and the arguments.
  std::vector<std::function<void(ServiceConfig&)>> overrides;
};

/// Describes the difference between the result of a load and the expected one; empty if there is
/// none.
std::string find_difference(const config::LoadResult<ServiceConfig>& loaded,
                            const ConfigInput& input);
std::string find_difference(const config::Errors& errors, const ConfigInput& input);

}  // namespace weir::simulate

template <>
inline constexpr std::array weir::json::enumerators<weir::simulate::ServiceMode>{
    weir::json::Named{weir::simulate::ServiceMode::fast, "fast"},
    weir::json::Named{weir::simulate::ServiceMode::safe, "safe"}};
