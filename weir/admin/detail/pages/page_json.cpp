// Pages as JSON.
#include <algorithm>

#include "weir/admin/detail/pages/page_style.hpp"
#include "weir/base/text/detail/printable.hpp"
#include "weir/json.hpp"

namespace weir::admin {
namespace {

/// Returns a string of JSON, which may be shown in a terminal.
std::string quoted(std::string_view text) {
  return to_printable_json(json::write(text));
}

class JsonStyle final : public PageStyle {
 public:
  using PageStyle::PageStyle;

  void begin_page(std::string& out, const Page& page) override {
    out += "{\"page\":" + json::write(page.name) + ",\"title\":" + quoted(frame().title);
    if (!page.note.empty()) out += ",\"note\":" + quoted(page.note);
  }
  void begin_section(std::string& out, const Section& section) override {
    if (!section.columns.empty()) out += "," + json::write(section.key) + ":[";
  }
  void row(std::string& out, const Section& section, std::size_t row) override {
    out += row > 0 ? ",{" : "{";
    const std::vector<Cell>& cells = section.rows[row];
    const std::size_t count = std::min(cells.size(), section.columns.size());
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) out += ",";
      out += json::write(section.columns[i].key) + ":" + cells[i].to_json();
    }
    out += "}";
  }
  void end_rows(std::string& out, const Section& section) override {
    const bool table = !section.columns.empty();
    const std::string key(section.key);
    if (table) out += "]";
    if (section.left_out > 0) {
      out += "," + json::write(key + "_left_out") + ":" + std::to_string(section.left_out);
    }
    if (section.facts.empty()) return;
    out += "," + json::write(table ? key + "_facts" : key) + ":{";
    for (std::size_t i = 0; i < section.facts.size(); ++i) {
      if (i > 0) out += ",";
      out += json::write(section.facts[i].key) + ":" + section.facts[i].cell.to_json();
    }
    out += "}";
  }
  void lines(std::string& out, const Section& section, std::string_view text, bool first,
             bool last) override {
    if (first) out += "," + json::write(section.key) + ":\"";
    const std::string string = quoted(text);
    out += std::string_view(string).substr(1, string.size() - 2);
    if (last) out += "\"";
  }
  void end_section(std::string&) override {}
  void end_page(std::string& out, const Page&) override { out += "}"; }
};

}  // namespace

std::unique_ptr<PageStyle> make_json_style(const Frame& frame) {
  return std::make_unique<JsonStyle>(frame);
}

}  // namespace weir::admin
