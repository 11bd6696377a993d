// Random values of a configuration, in the forms of a file or of a text.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/simulate/config_input.hpp"
#include "weir/sim/detail/random.hpp"

namespace weir::simulate {

/// A ConfigValue is the text of a variable or an argument, or TOML in a file.
struct ConfigValue {
  ConfigValue(std::string its_text, std::function<void(ServiceConfig&)> its_change,
              std::string its_expected = {})
      : text(std::move(its_text)),
        change(std::move(its_change)),
        expected(std::move(its_expected)) {}

  std::string text;
  std::function<void(ServiceConfig&)> change;  ///< none: the value is wrong
  std::string expected;                        ///< text of the error of a wrong value
};

/// Returns a TOML string.
std::string toml_string(std::string_view text);

/// Draws the values of one source.
class ConfigValues {
 public:
  ConfigValues(sim::Random& random, bool toml, double wrong)
      : random_(random), toml_(toml), wrong_(wrong) {}

  ConfigValue draw(std::string_view key);

 private:
  bool wrong() { return random_.bernoulli(wrong_); }
  /// Returns a text, in quotes in a file.
  std::string as_text(const std::string& text) const { return toml_ ? toml_string(text) : text; }
  ConfigValue wrong_one(std::string expected, const std::vector<std::string>& texts,
                        const std::vector<std::string>& literals) {
    const auto& all = toml_ ? literals : texts;
    return {all[random_.below(all.size())], {}, std::move(expected)};
  }
  std::string draw_word();
  ConfigValue name();
  ConfigValue verbose();
  template <class T>
  ConfigValue integer(const std::function<void(ServiceConfig&, T)>& set);
  ConfigValue ratio();
  ConfigValue mode();
  ConfigValue duration(bool milliseconds, const std::function<void(ServiceConfig&, Duration)>& set);
  ConfigValue size();
  ConfigValue tags();

  sim::Random& random_;
  bool toml_;
  double wrong_;
};

}  // namespace weir::simulate
