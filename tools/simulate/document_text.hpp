// Random documents as JSON, correct and broken ones.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/sim/detail/random.hpp"

namespace weir::simulate {

/// A DocumentText is a random Document as JSON: with fields in any order, with blanks, escapes, and
/// numbers in many forms. It knows the usual form of the same document without reading the text.
class DocumentText {
 public:
  explicit DocumentText(sim::Random& random);

  const std::string& text() const noexcept { return text_; }
  /// Returns the document as the server writes it.
  const std::string& usual() const noexcept { return usual_; }

  /// The first error of a broken document.
  struct Fault {
    std::string path;
    std::size_t offset = 0;
  };
  /// Breaks the text at a random place, and returns the error that a reader must report.
  Fault break_text();

 private:
  enum class Kind : std::uint8_t { integer, real, text, boolean, array, three, object, map, any };
  /// One value in the text.
  struct Place {
    Kind kind;
    std::string path;
    std::size_t begin;
    std::size_t end;
    bool empty = false;          // an array, object or map without members
    std::string last_name = {};  // name of the last member of an object or map
    std::size_t last_begin = 0;  // offset of the comma before it; 0: it is the only one
    bool last_is_required = false;
  };
  struct Field {
    std::string name;
    bool required;
    std::function<std::string(const std::string& path)> write;  // returns the usual form
  };

  void blanks();
  void quoted(const std::string& characters);
  std::string draw_text();
  void place(Kind kind, const std::string& path, std::size_t begin);
  std::string integer(const std::string& path, std::int64_t least, std::int64_t most);
  std::string natural(const std::string& path);
  std::string real(const std::string& path);
  std::string string(const std::string& path);
  std::string boolean(const std::string& path);
  std::string color(const std::string& path);
  std::string array(Kind kind, const std::string& path, std::size_t size,
                    const std::function<std::string(const std::string& path)>& element);
  std::string table(const std::string& path);
  std::string any(const std::string& path);
  std::string part(const std::string& path);
  std::string object(const std::string& path, std::vector<Field> fields);
  std::string document();
  Fault replace(const Place& place, std::string_view by, std::size_t offset);
  Fault insert(const std::string& path, std::size_t at, std::string_view more, std::size_t offset);
  Fault break_value(const Place& place);
  Fault break_string(const Place& place);
  Fault break_members(const Place& place);

  sim::Random& random_;
  std::string text_;
  std::string usual_;
  std::vector<Place> places_;
};

}  // namespace weir::simulate
