// TextField: a field of HPACK for tests and fuzz targets.
#pragma once

#include <ostream>
#include <string>

namespace weir::http {

/// A field that owns its texts.
struct TextField {
  std::string name;
  std::string value;
  bool never_indexed = false;

  bool operator==(const TextField&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const TextField& field) {
    return out << field.name << ": " << field.value << (field.never_indexed ? " (never)" : "");
  }
};

}  // namespace weir::http
