#include "weir/os/detail/process/symbol_outline.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <system_error>
#include <utility>

namespace weir::os {
namespace {

using Code = std::pair<std::string_view, std::string_view>;

constexpr std::array standard_names{Code{"Sa", "std::allocator"},
                                    Code{"Sb", "std::basic_string"},
                                    Code{"Ss", "std::string"},
                                    Code{"Si", "std::istream"},
                                    Code{"So", "std::ostream"},
                                    Code{"Sd", "std::iostream"},
                                    Code{"St", "std"}};

constexpr std::array operators{
    Code{"cl", "()"},      Code{"ix", "[]"},       Code{"pt", "->"},  Code{"de", "*"},
    Code{"eq", "=="},      Code{"ne", "!="},       Code{"lt", "<"},   Code{"gt", ">"},
    Code{"le", "<="},      Code{"ge", ">="},       Code{"ss", "<=>"}, Code{"pl", "+"},
    Code{"mi", "-"},       Code{"ml", "*"},        Code{"dv", "/"},   Code{"aS", "="},
    Code{"pL", "+="},      Code{"mI", "-="},       Code{"pp", "++"},  Code{"mm", "--"},
    Code{"ls", "<<"},      Code{"rs", ">>"},       Code{"or", "|"},   Code{"an", "&"},
    Code{"oo", "||"},      Code{"aa", "&&"},       Code{"nt", "!"},   Code{"nw", " new"},
    Code{"dl", " delete"}, Code{"aw", " co_await"}};

/// Reads a symbol from left to right. A function returns false if it meets something that it does
/// not know; the reader then stops, and the name so far is the result.
class OutlineReader {
 public:
  explicit OutlineReader(std::string_view symbol) noexcept : rest_(symbol) {}

  bool read_encoding(std::string& name) { return read_name(name); }

 private:
  static constexpr unsigned depth_max = 64;

  char peek(std::size_t at = 0) const noexcept { return at < rest_.size() ? rest_[at] : '\0'; }
  bool is_digit(std::size_t at = 0) const noexcept { return peek(at) >= '0' && peek(at) <= '9'; }
  bool take(std::string_view text) noexcept {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  bool take_any(std::string_view letters) noexcept {
    if (rest_.empty() || !letters.contains(rest_.front())) return false;
    rest_.remove_prefix(1);
    return true;
  }
  /// Takes a number in digits and capital letters, if any, and the underscore behind it.
  bool take_sequence() noexcept {
    while (is_digit() || (peek() >= 'A' && peek() <= 'Z')) rest_.remove_prefix(1);
    return take("_");
  }
  static void append(std::string& name, std::string_view part) {
    if (!name.empty()) name += "::";
    name += part;
  }

  /// Reads a number and as many bytes.
  bool read_counted(std::string_view& bytes) {
    std::size_t size = 0;
    const auto number = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
    if (number.ec != std::errc() || size == 0) return false;
    rest_.remove_prefix(static_cast<std::size_t>(number.ptr - rest_.data()));
    if (size > rest_.size()) return false;
    bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  bool read_source_name(std::string& name) {
    if (!read_counted(last_)) return false;
    if (!last_.starts_with("_GLOBAL__N_")) append(name, last_);
    std::string_view tag;
    while (take("B")) {
      if (!read_counted(tag)) return false;
    }
    return true;
  }

  /// Reads one part of a qualified name, without its template arguments. A constructor repeats the
  /// part before it, so the length of the name is limited.
  bool read_part(std::string& name) {
    constexpr std::size_t name_max = 4096;
    if (name.size() > name_max) return false;
    take("L");  // internal linkage
    if (is_digit()) return read_source_name(name);
    if (peek() == 'S') {
      for (const auto& [code, text] : standard_names) {
        if (!take(code)) continue;
        append(name, text);
        return true;
      }
      return false;  // an abbreviation of something before
    }
    if (peek() == 'C' && is_digit(1)) {
      rest_.remove_prefix(2);
      append(name, last_);
      return true;
    }
    if (peek() == 'D' && is_digit(1)) {
      rest_.remove_prefix(2);
      append(name, "~" + std::string(last_));
      return true;
    }
    if (take("Ut")) {
      append(name, "{unnamed}");
      return take_sequence();
    }
    if (take("Ul")) {
      append(name, "{lambda}");
      return skip_until_end() && take_sequence();
    }
    if (take("cv")) {
      append(name, "operator <type>");
      return skip_type();
    }
    for (const auto& [code, text] : operators) {
      if (!take(code)) continue;
      append(name, "operator" + std::string(text));
      return true;
    }
    return false;
  }

  bool read_template_args(std::string& name) {
    name += "<...>";
    const std::string_view last = last_;
    if (!skip_args()) return false;
    last_ = last;  // of a constructor behind them
    return true;
  }

  bool read_name(std::string& name) {
    const Level level(*this);
    if (level.too_deep()) return false;
    if (take("Z")) {
      if (!read_name(name) || !skip_until_end()) return false;
      if (take("d") && !take_sequence()) return false;
      if (!read_name(name)) return false;
      return !take("_") || take_any("0123456789");
    }
    if (take("N")) {
      while (take_any("rVKROH")) {
      }
      while (!take("E")) {
        if (peek() == 'I' ? !read_template_args(name) : !read_part(name)) return false;
      }
      return true;
    }
    if (take("St")) append(name, "std");
    if (!read_part(name)) return false;
    return peek() != 'I' || read_template_args(name);
  }

  bool skip_name() {
    std::string unused;
    return read_name(unused);
  }

  /// Skips types up to the E behind them.
  bool skip_until_end() {
    while (!take("E")) {
      const bool qualifier = (peek() == 'R' || peek() == 'O') && peek(1) == 'E';
      if (qualifier) {
        rest_.remove_prefix(1);
      } else if (!skip_type()) {
        return false;
      }
    }
    return true;
  }

  bool skip_args() {
    if (!take("I") && !take("J")) return false;
    while (!take("E")) {
      if (!skip_arg()) return false;
    }
    return true;
  }

  bool skip_arg() {
    const Level level(*this);
    if (level.too_deep()) return false;
    if (peek() == 'J') return skip_args();
    if (take("L")) return skip_literal();
    if (peek() == 'T' && std::string_view("yknp").contains(peek(1)) && peek(1) != '\0')
      return skip_parameter() && skip_arg();
    return skip_type();
  }

  /// Skips the declaration of a template parameter, which may have a constraint.
  bool skip_parameter() {
    const Level level(*this);
    if (level.too_deep()) return false;
    if (take("Ty")) return true;
    if (take("Tp")) return skip_parameter();
    if (take("Tn")) return skip_type();
    return take("Tk") && skip_type();  // the name of a concept
  }

  bool skip_literal() {
    if (take("_Z")) return skip_name() && skip_until_end();
    if (!skip_type()) return false;
    while (!rest_.empty() && peek() != 'E') rest_.remove_prefix(1);
    return take("E");
  }

  bool skip_type() {
    const Level level(*this);
    if (level.too_deep()) return false;
    while (take_any("rVKPROCG")) {
    }
    if (take_any("vwbcahstijlmxynofdegz")) return true;
    if (take("DF")) {
      while (is_digit()) rest_.remove_prefix(1);
      return take_any("_bx");
    }
    if (take("Dp") || take("Do")) return skip_type();
    if (take("Dk") || take("DK")) return skip_type();
    if (peek() == 'D') return take("D") && take_any("iusacnhfed");
    if (take("F")) {
      take("Y");
      return skip_until_end();
    }
    if (take("A")) {
      while (is_digit()) rest_.remove_prefix(1);
      return take("_") && skip_type();
    }
    if (take("M")) return skip_type() && skip_type();
    if (take("Ts") || take("Tu") || take("Te")) return skip_name();
    const bool abbreviated = is_digit(1) || peek(1) == '_' || (peek(1) >= 'A' && peek(1) <= 'Z');
    if ((peek() == 'T' || peek() == 'S') && abbreviated) {
      rest_.remove_prefix(1);
      return take_sequence() && (peek() != 'I' || skip_args());
    }
    return (peek() == 'N' || peek() == 'Z' || peek() == 'S' || is_digit()) && skip_type_name();
  }

  /// Skips a name that may begin with an abbreviation of something before.
  bool skip_type_name() {
    if (peek() == 'N' && peek(1) == 'S' && peek(2) != 't') {
      rest_.remove_prefix(2);
      if (!take_any("absiod") && !take_sequence()) return false;
      std::string unused;
      while (!take("E")) {
        if (peek() == 'I' ? !skip_args() : !read_part(unused)) return false;
      }
      return true;
    }
    return skip_name();
  }

  /// Counts the calls of functions that call themselves.
  class Level {
   public:
    explicit Level(OutlineReader& reader) noexcept : reader_(reader) { ++reader_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --reader_.depth_; }
    bool too_deep() const noexcept { return reader_.depth_ > depth_max; }

   private:
    OutlineReader& reader_;
  };

  std::string_view rest_;
  std::string_view last_;  // the last name without qualifiers
  unsigned depth_ = 0;
};

}  // namespace

std::string outline_of_symbol(std::string_view symbol) {
  std::string name;
  if (!symbol.starts_with("_Z")) return name;
  symbol.remove_prefix(2);
  OutlineReader(symbol).read_encoding(name);
  return name;
}

}  // namespace weir::os
