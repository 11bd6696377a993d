#include "tests/http1_cases.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace weir::tests {
namespace {

/// A Reader parses the JSON of the case files: arrays, objects, latin-1 strings and whole
/// numbers.
class Reader {
 public:
  explicit Reader(std::string text) : text_(std::move(text)) {}

  /// Takes `symbol` and returns true if it comes next.
  bool take(char symbol) {
    skip_space();
    if (position_ == text_.size() || text_[position_] != symbol) return false;
    ++position_;
    return true;
  }

  void need(char symbol) {
    if (!take(symbol)) fail(std::string("expected ") + symbol);
  }

  std::string string() {
    need('"');
    std::string value;
    while (next() != '"') value.push_back(next() == '\\' ? escaped() : text_[position_++]);
    ++position_;
    return value;
  }

  std::size_t number() {
    skip_space();
    std::size_t digits = 0;
    const std::size_t value = std::stoul(text_.substr(position_, 20), &digits);
    position_ += digits;
    return value;
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error(why + " at byte " + std::to_string(position_));
  }

 private:
  char next() const {
    if (position_ >= text_.size()) fail("unexpected end");
    return text_[position_];
  }

  void skip_space() {
    const std::size_t found = text_.find_first_not_of(" \t\r\n", position_);
    position_ = std::min(found, text_.size());
  }

  char escaped() {
    ++position_;
    const char kind = next();
    ++position_;
    constexpr std::string_view names = "\"\\/bfnrt";
    constexpr std::string_view values = "\"\\/\b\f\n\r\t";
    if (const std::size_t index = names.find(kind); index != names.npos) return values[index];
    if (kind != 'u') fail("unknown escape");
    const unsigned long code = std::stoul(text_.substr(position_, 4), nullptr, 16);
    if (code > 0xff) fail("not latin-1");
    position_ += 4;
    return static_cast<char>(code);
  }

  std::string text_;
  std::size_t position_ = 0;
};

Http1Case read_case(Reader& reader) {
  Http1Case result;
  std::string repeated;
  std::string rest;
  reader.need('{');
  do {
    const std::string key = reader.string();
    reader.need(':');
    if (key == "expect") {
      reader.need('[');
      do result.expect.push_back(reader.string());
      while (reader.take(','));
      reader.need(']');
    } else if (key == "repeat") {
      reader.need('[');
      const std::string text = reader.string();
      reader.need(',');
      for (std::size_t left = reader.number(); left > 0; --left) repeated += text;
      reader.need(']');
    } else if (key == "answers") {
      result.answers = reader.number();
    } else {
      std::string* const target = key == "id"      ? &result.id
                                  : key == "bytes" ? &result.bytes
                                  : key == "rest"  ? &rest
                                  : key == "why"   ? &result.why
                                                   : nullptr;
      if (target == nullptr) reader.fail("unknown key " + key);
      *target = reader.string();
    }
  } while (reader.take(','));
  reader.need('}');
  result.bytes += repeated + rest;
  if (result.id.empty() || result.bytes.empty() || result.expect.empty()) {
    reader.fail("a case without id, bytes or expect");
  }
  return result;
}

bool is_met(const std::string& expected, const Http1Outcome& outcome) {
  const int status = outcome.status;
  if (expected == "wait") return status == 0 && !outcome.interim;
  if (expected == "100") return outcome.interim;
  if (expected == "closeok") return status != 0 && outcome.closes;
  if (expected == "400") return status >= 400;
  if (expected == "200") return (status >= 200 && status < 300) || status == 404 || status == 405;
  return expected == std::to_string(status);
}

}  // namespace

bool matches_expectation(const Http1Case& test_case, const Http1Outcome& outcome) {
  return std::any_of(test_case.expect.begin(), test_case.expect.end(),
                     [&outcome](const std::string& each) { return is_met(each, outcome); });
}

std::vector<Http1Case> read_http1_cases(std::string_view file_name) {
  const std::string path = std::string(WEIR_TEST_DATA_DIR "/") + std::string(file_name);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  Reader reader(std::string(std::istreambuf_iterator<char>(file), {}));
  std::vector<Http1Case> cases;
  reader.need('[');
  do cases.push_back(read_case(reader));
  while (reader.take(','));
  reader.need(']');
  return cases;
}

}  // namespace weir::tests
