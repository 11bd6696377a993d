// Pages as text for terminals.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "weir/admin/detail/pages/page_style.hpp"
#include "weir/base/text/detail/printable.hpp"

namespace weir::admin {
namespace {

std::size_t width_of(std::string_view text) {
  const auto continues = [](char each) {
    return (static_cast<unsigned char>(each) & 0xc0) == 0x80;
  };
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues));
}

void add_padded(std::string& line, std::string_view text, std::size_t width, bool right) {
  const std::string spaces(width - std::min(width, width_of(text)), ' ');
  if (!line.empty()) line += "  ";
  right ? line.append(spaces).append(text) : line.append(text).append(spaces);
}

std::string finished_line(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string marked(const Cell& cell) {
  const std::string_view mark =
      cell.tone() == Tone::bad ? "!! " : (cell.tone() == Tone::warning ? "! " : "");
  return std::string(mark) + to_printable(cell.to_text());
}

class TextStyle final : public PageStyle {
 public:
  using PageStyle::PageStyle;

  bool measures() const noexcept override { return true; }
  void measure(const Section& section, std::size_t row) override {
    const std::vector<Cell>& cells = section.rows[row];
    widths_.resize(section.columns.size());
    for (std::size_t i = 0; i < std::min(cells.size(), widths_.size()); ++i) {
      widths_[i] = std::max(widths_[i], width_of(marked(cells[i])));
    }
  }
  void begin_page(std::string& out, const Page& page) override {
    out += to_printable(frame().title) + ": " + to_printable(page.title) + "\n";
    if (!page.note.empty()) out += to_printable(page.note) + "\n";
  }
  void begin_section(std::string& out, const Section& section) override;
  void row(std::string& out, const Section& section, std::size_t row) override;
  void end_rows(std::string& out, const Section& section) override {
    widths_.clear();
    if (section.left_out > 0) out += left_out_note(section) + "\n";
  }
  void lines(std::string& out, const Section&, std::string_view text, bool, bool) override {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      out += to_printable(text.substr(0, end)) + "\n";
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  void end_section(std::string&) override {}
  void end_page(std::string&, const Page&) override {}

 private:
  std::vector<std::size_t> widths_;  // of the columns of the present section
};

void TextStyle::begin_section(std::string& out, const Section& section) {
  out += "\n";
  if (!section.title.empty()) out += to_printable(section.title) + "\n";
  if (!section.note.empty()) out += to_printable(section.note) + "\n";
  std::size_t width = 0;
  for (const Fact& each : section.facts) width = std::max(width, width_of(each.label));
  for (const Fact& each : section.facts) {
    std::string line;
    add_padded(line, each.label, width, false);
    out += line + "  " + marked(each.cell) + "\n";
  }
  if (section.columns.empty()) return;
  if (section.rows.empty()) {
    out += std::string(section.when_empty) + "\n";
    return;
  }
  std::string line;
  for (std::size_t i = 0; i < widths_.size(); ++i) {
    widths_[i] = std::max(widths_[i], width_of(section.columns[i].heading));
    const bool right = i < section.rows.front().size() && section.rows.front()[i].is_number();
    add_padded(line, section.columns[i].heading, widths_[i], right);
  }
  out += finished_line(std::move(line));
}

void TextStyle::row(std::string& out, const Section& section, std::size_t row) {
  const std::vector<Cell>& cells = section.rows[row];
  std::string line;
  for (std::size_t i = 0; i < std::min(cells.size(), widths_.size()); ++i) {
    add_padded(line, marked(cells[i]), widths_[i], cells[i].is_number());
  }
  out += finished_line(std::move(line));
}

}  // namespace

std::unique_ptr<PageStyle> make_text_style(const Frame& frame) {
  return std::make_unique<TextStyle>(frame);
}

}  // namespace weir::admin
