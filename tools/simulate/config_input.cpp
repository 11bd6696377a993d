// Draws the texts of a configuration together with their values.
#include "tools/simulate/config_input.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "tools/simulate/config_values.hpp"

namespace weir::simulate {
namespace {

using Change = std::function<void(ServiceConfig&)>;

constexpr std::string_view prefix = "APP";

constexpr std::array<std::string_view, 9> top_keys{
    "name", "verbose", "offset", "seed", "ratio", "mode", "level", "idle_timeout", "tags"};
constexpr std::array<std::string_view, 3> limit_keys{"limits.body_max", "limits.connections_max",
                                                     "limits.patience"};
constexpr std::array<std::string_view, 3> weight_keys{"weights.sky", "weights.sea", "weights.x_1"};

/// Writes a file, and knows the position of each value.
class FileWriter {
 public:
  FileWriter(ConfigInput& input, sim::Random& random, double wrong)
      : input_(input), random_(random), values_(random, true, wrong), wrong_(wrong) {}

  void write() {
    blanks();
    for (const std::string_view key : top_keys) {
      if (random_.bernoulli(0.4)) member(key, std::string(key));
    }
    if (random_.bernoulli(wrong_)) unknown("nmae", "nmae", "unknown; did you mean name?");
    const bool dotted = random_.bernoulli(0.3);
    if (dotted) table("limits", limit_keys, true);
    if (dotted && random_.bernoulli(0.5)) table("weights", weight_keys, true);
    if (!dotted) table("limits", limit_keys, false);
    if (!dotted && random_.bernoulli(0.5)) table("weights", weight_keys, false);
    peers();
    if (random_.bernoulli(wrong_)) break_syntax();
  }

 private:
  void blanks() {
    if (random_.bernoulli(0.3)) input_.file += "# comment = \"x\"\n\n";
  }
  std::string position() const {
    const std::size_t line_start = input_.file.rfind('\n') + 1;  // 0 in the first line
    const auto line = 1 + std::ranges::count(input_.file, '\n');
    return std::string(ConfigInput::path) + ":" + std::to_string(line) + ":" +
           std::to_string(input_.file.size() - line_start + 1);
  }
  void value(std::string_view key, const ConfigValue& candidate) {
    if (candidate.change) {
      candidate.change(input_.expected);
    } else {
      input_.errors.push_back(
          {position(), std::string(key), "expected " + candidate.expected + ", found "});
    }
    input_.file += candidate.text;
  }
  void member(std::string_view key, const std::string& name) {
    const std::string_view equals = random_.bernoulli(0.5) ? " = " : "=";
    input_.file += name + std::string(equals);
    value(key, values_.draw(key));
    input_.file += random_.bernoulli(0.3) ? " # comment\n" : "\n";
    blanks();
  }
  void unknown(const std::string& key, const std::string& name, const std::string& what) {
    input_.errors.push_back({position(), key, what});
    input_.file += name + " = 1\n";
  }
  template <std::size_t N>
  void table(const std::string& name, const std::array<std::string_view, N>& keys, bool dotted) {
    if (!dotted) input_.file += "[" + name + "]\n";
    for (const std::string_view key : keys) {
      const std::string inner(key.substr(name.size() + 1));
      if (random_.bernoulli(0.5)) member(key, dotted ? std::string(key) : inner);
    }
  }
  void peers() {
    constexpr std::array<std::string_view, 5> right{"127.0.0.1:8080", "[::1]:80", ":9",
                                                    "unix:/run/a", "unix:@abstract"};
    constexpr std::array<std::string_view, 5> bad{"localhost:80", "1.2.3.4:65536", "::1:80", "",
                                                  "unix:"};
    std::vector<ServicePeer> all;
    for (std::size_t left = random_.below(3); left > 0; --left) {
      const std::string key = "peers[" + std::to_string(all.size()) + "]";
      input_.file += "[[peers]]\n";
      ServicePeer& peer = all.emplace_back();
      if (random_.bernoulli(0.7)) {
        peer.name = "peer" + std::to_string(left);
        input_.file += "name = '" + peer.name + "'\n";
      }
      const bool is_right = !random_.bernoulli(wrong_);
      const std::string text(random_.one_of(is_right ? right : bad));
      input_.file += "address = ";
      value(key + ".address",
            {toml_string(text), is_right ? Change([](ServiceConfig&) {}) : Change(),
             "an address such as "});
      if (!is_right) input_.errors.back().what = "expected an address such as ";
      input_.file += "\n";
      if (is_right) peer.address = Endpoint::parse(text).value();
    }
    if (!all.empty()) input_.expected.peers = std::move(all);
  }
  /// Adds a line that is not TOML. Then the other values of the file do not count.
  void break_syntax() {
    input_.file += "= 1\n";
    input_.expected = {};
    input_.errors = {{ConfigInput::path, "", ""}};
  }

  ConfigInput& input_;
  sim::Random& random_;
  ConfigValues values_;
  double wrong_;
};

std::string variable_of(std::string_view key) {
  std::string variable = std::string(prefix) + "_";
  for (const char each : key) {
    const bool lower = each >= 'a' && each <= 'z';
    variable += lower ? static_cast<char>(each - 'a' + 'A') : each == '.' ? '_' : each;
  }
  return variable;
}

void add_override(ConfigInput& input, const std::string& source, std::string_view key,
                  const ConfigValue& candidate) {
  if (candidate.change) {
    candidate.change(input.expected);
    input.overrides.push_back(candidate.change);
  } else {
    input.errors.push_back(
        {source, std::string(key), "expected " + candidate.expected + ", found "});
  }
}

void draw_environment(ConfigInput& input, sim::Random& random, double wrong) {
  ConfigValues values(random, false, wrong);
  const auto set = [&](std::string_view key) {
    if (!random.bernoulli(0.2)) return;
    const ConfigValue candidate = values.draw(key);
    const std::string variable = variable_of(key);
    input.environment.push_back(variable + "=" + candidate.text);
    add_override(input, "environment " + variable, key, candidate);
  };
  for (const std::string_view key : top_keys) set(key);
  for (const std::string_view key : limit_keys) set(key);
  if (random.bernoulli(0.2)) {
    input.environment.emplace_back("APP_WEIGHTS={ sea = -5, y = 6 }");
    const Change change = [](ServiceConfig& config) {
      config.weights["sea"] = -5;
      config.weights["y"] = 6;
    };
    add_override(input, "", "", {"", change});
  }
  if (random.bernoulli(wrong)) {
    input.environment.emplace_back("APP_NMAE=1");
    input.errors.push_back({"environment APP_NMAE", "", "unknown; did you mean APP_NAME?"});
  }
  input.environment.insert(input.environment.end(), {"OTHER_NAME=x", "APPNAME=x", "PATH=/bin"});
}

void draw_arguments(ConfigInput& input, sim::Random& random, double wrong) {
  ConfigValues values(random, false, wrong);
  const auto set = [&](std::string_view key) {
    if (!random.bernoulli(0.2)) return;
    const ConfigValue candidate = values.draw(key);
    const std::string option = "--" + std::string(key);
    if (candidate.text == "true" && random.bernoulli(0.5)) {
      input.arguments.push_back(option);
    } else if (candidate.text.starts_with("--") || random.bernoulli(0.5)) {
      input.arguments.push_back(option + "=" + candidate.text);
    } else {
      input.arguments.insert(input.arguments.end(), {option, candidate.text});
    }
    add_override(input, "argument " + option, key, candidate);
  };
  for (const std::string_view key : top_keys) set(key);
  for (const std::string_view key : limit_keys) set(key);
  for (const std::string_view key : weight_keys) set(key);
  if (random.bernoulli(0.2) && std::ranges::none_of(input.arguments, [](const std::string& each) {
        return each.starts_with("--tags");
      })) {
    input.arguments.insert(input.arguments.end(),
                           {"--tags", "a,b", "--tags=[\"c,d\"]", "--tags", "e"});
    add_override(input, "", "",
                 {"", [](ServiceConfig& config) { config.tags = {"a", "b", "c,d", "e"}; }});
  }
  const auto error = [&](const std::string& argument, const ExpectedError& expected) {
    if (!random.bernoulli(wrong)) return;
    input.arguments.insert(input.arguments.begin(), argument);
    input.errors.push_back(expected);
  };
  error("--ofset=1", {"argument --ofset", "ofset", "unknown; did you mean --offset?"});
  error("--limits=1", {"argument --limits", "limits", "unknown"});
  error("plain", {"argument \"plain\"", "", "expected an option that begins with --"});
}

}  // namespace

std::string to_text(const ServiceConfig& config) {
  std::string text = "name=" + config.name + " verbose=" + (config.verbose ? "1" : "0") +
                     " offset=" + std::to_string(config.offset) +
                     " seed=" + std::to_string(config.seed) +
                     " ratio=" + std::to_string(config.ratio) +
                     " mode=" + (config.mode == ServiceMode::safe ? "safe" : "fast") +
                     " level=" + (config.level ? std::to_string(*config.level) : "none") +
                     " idle_timeout=" + std::to_string(config.idle_timeout.count());
  text += " tags=";
  for (const std::string& each : config.tags) text += each + "|";
  text += " weights=";
  for (const auto& [name, weight] : config.weights)
    text += name + ":" + std::to_string(weight) + "|";
  text += " peers=";
  for (const ServicePeer& each : config.peers)
    text += each.name + "@" + each.address.to_string() + "|";
  return text + " body_max=" + std::to_string(config.limits.body_max.bytes()) +
         " connections_max=" + std::to_string(config.limits.connections_max) +
         " patience=" + std::to_string(config.limits.patience.count());
}

ConfigInput ConfigInput::draw(sim::Random& random, const ConfigInputOptions& options) {
  ConfigInput input;
  // Half of the inputs have no error, so that their values count.
  const double wrong = random.bernoulli(0.5) ? 0 : options.wrong;
  FileWriter(input, random, wrong).write();
  if (!options.only_file) {
    draw_environment(input, random, wrong);
    draw_arguments(input, random, wrong);
  }
  std::ranges::sort(input.errors);
  return input;
}

ConfigInput ConfigInput::draw_file(sim::Random& random, const ConfigInput& other, double wrong) {
  ConfigInput input;
  FileWriter(input, random, random.bernoulli(0.5) ? 0 : wrong).write();
  input.environment = other.environment;
  input.arguments = other.arguments;
  input.overrides = other.overrides;
  for (const Change& change : input.overrides) change(input.expected);
  std::ranges::sort(input.errors);
  return input;
}

std::string find_difference(const config::Errors& errors, const ConfigInput& input) {
  std::vector<ExpectedError> found;
  for (const config::Error& each : errors.all) found.push_back({each.source, each.key, each.what});
  std::ranges::sort(found);
  const auto matches = [](const ExpectedError& one, const ExpectedError& right) {
    // The place of a syntax error is not predicted.
    const bool same_source = right.what.empty() ? one.source.starts_with(right.source + ":")
                                                : one.source == right.source;
    return same_source && one.key == right.key && one.what.starts_with(right.what);
  };
  if (std::ranges::equal(found, input.errors, matches)) return {};
  std::string text = errors.message() + "\ninstead of";
  for (const ExpectedError& each : input.errors) {
    text += "\n" + each.source + ": " + each.key + ": " + each.what;
  }
  return text;
}

std::string find_difference(const config::LoadResult<ServiceConfig>& loaded,
                            const ConfigInput& input) {
  if (!loaded) return find_difference(loaded.error(), input);
  if (!input.errors.empty()) {
    return "no error instead of " + input.errors.front().source + ": " + input.errors.front().what;
  }
  const std::string found = to_text(*loaded);
  const std::string right = to_text(input.expected);
  return found == right ? "" : found + "\ninstead of\n" + right;
}

}  // namespace weir::simulate
