// The limit of the bytes of a page.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/admin/detail/listener_parts.hpp"
#include "weir/base/text/detail/printable.hpp"
#include "weir/task/context.hpp"
#include "weir/task/detail/turn_budget.hpp"

namespace weir::admin {
namespace {

// Markup of a row and a form, and of a cell in HTML: itself, its link, its tone, and its bar.
constexpr std::size_t row_markup = 16;
constexpr std::size_t form_markup = 160;
constexpr std::size_t cell_markup = 36;
constexpr std::size_t link_markup = 16;
constexpr std::size_t tone_markup = 32;
constexpr std::size_t share_markup = 200;
// A value of JSON with its name's quotes, and a number there.
constexpr std::size_t json_markup = 8;
constexpr std::size_t json_number = 24;

/// Returns the number of bytes that are not part of a printable character.
std::size_t count_unprintable(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t printable = printable_prefix(text); printable < text.size();
       printable = printable_prefix(text)) {
    ++count;
    text.remove_prefix(printable + 1);
  }
  return count;
}

/// Returns the largest size of an escaped text in HTML or JSON. The longest escapes of a byte, such
/// as &quot; and \\u000a, have six bytes.
std::size_t escaped_size(std::string_view text) {
  const auto is_special = [](char each) {
    return each == '"' || each == '\'' || each == '&' || each == '<' || each == '>' || each == '\\';
  };
  const auto special = static_cast<std::size_t>(std::ranges::count_if(text, is_special));
  return text.size() + 5 * (special + count_unprintable(text));
}

/// Returns the size of a text in a page for terminals, where \\xNN stands for a byte.
std::size_t printed_size(std::string_view text) {
  return text.size() + 3 * count_unprintable(text);
}

std::size_t count_beyond_ascii(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char each) { return static_cast<unsigned char>(each) >= 0x80; }));
}

std::size_t html_size(const Cell& cell) {
  std::size_t size = cell_markup + escaped_size(cell.to_text());
  if (!cell.link().empty()) size += link_markup + escaped_size(cell.link());
  if (cell.tone() != Tone::plain) size += tone_markup;
  if (cell.is_share()) size += share_markup;
  return size;
}

std::size_t json_size(std::string_view key, const Cell& cell) {
  return json_markup + escaped_size(key) + std::max(json_number, escaped_size(cell.to_text()));
}

std::size_t html_size(const Form& form) {
  std::size_t size = form_markup + escaped_size(form.action) + escaped_size(form.label);
  for (const auto& [name, value] : form.hidden) {
    size += cell_markup + escaped_size(name) + escaped_size(value);
  }
  for (const std::string& each : form.choices) size += cell_markup + escaped_size(each);
  return size;
}

}  // namespace

/// The largest size of the rows of a section in any format.
class PageLimiter::RowsSize {
 public:
  explicit RowsSize(const Section& section) : section_(section) {
    for (const Column& each : section.columns) widths_.push_back(each.heading.size());
    more_bytes_.resize(widths_.size());
  }
  /// Returns the size after row `index` too.
  std::size_t add(std::size_t index) {
    const std::vector<Cell>& row = section_.rows[index];
    html_ += row_markup;
    for (const Cell& each : row) html_ += html_size(each);
    if (index < section_.forms.size()) html_ += html_size(section_.forms[index]);
    json_ += row_markup;
    for (std::size_t i = 0; i < std::min(row.size(), widths_.size()); ++i) {
      json_ += json_size(section_.columns[i].key, row[i]);
      // Each line of a text is as long as the widest cells, with their marks. A cell is padded by
      // its characters, of which some have several bytes.
      const std::string text = row[i].to_text();
      widths_[i] = std::max(widths_[i], printed_size(text) + 3);
      more_bytes_[i] = std::max(more_bytes_[i], count_beyond_ascii(text));
    }
    std::size_t line = 1;
    for (std::size_t i = 0; i < widths_.size(); ++i) line += widths_[i] + more_bytes_[i] + 2;
    return std::max({html_, json_, line * (index + 2)});
  }

 private:
  const Section& section_;
  std::vector<std::size_t> widths_;      // of the columns
  std::vector<std::size_t> more_bytes_;  // bytes by which a cell exceeds its width
  std::size_t html_ = 0;
  std::size_t json_ = 0;
};

namespace {

/// Cuts the text at the end of a line.
void limit_text(Section& section, std::size_t& left) {
  std::string& text = section.preformatted;
  const std::size_t size = escaped_size(text);
  if (size <= left) {
    left -= size;
    return;
  }
  const std::size_t end = text.rfind('\n', left / 6);
  text.resize(end == text.npos ? 0 : end + 1);
  left -= std::min(left, escaped_size(text));
  section.note += (section.note.empty() ? "" : " ") +
                  std::string("The end of the text is left out, because the page is too long.");
}

}  // namespace

PageLimiter::PageLimiter(Page& page, std::size_t bytes_max) : page_(page), left_(bytes_max) {}

PageLimiter::~PageLimiter() = default;

bool PageLimiter::step() {
  if (section_ == page_.sections.size()) return false;
  Section& section = page_.sections[section_];
  if (rows_ == nullptr) {
    begin_section(section);
    return true;
  }
  if (row_ < section.rows.size()) {
    const std::size_t size = rows_->add(row_);
    if (size <= left_) {
      used_ = size;
      ++row_;
      return true;
    }
  }
  end_section(section);
  return true;
}

void PageLimiter::begin_section(const Section& section) {
  std::size_t fixed = form_markup + escaped_size(section.title) + escaped_size(section.note);
  for (const Fact& each : section.facts) {
    fixed += json_size(each.key, each.cell) + html_size(each.cell) + escaped_size(each.label);
  }
  left_ -= std::min(left_, fixed);
  rows_ = std::make_unique<RowsSize>(section);
  row_ = 0;
  used_ = 0;
}

/// Keeps the rows that fit.
void PageLimiter::end_section(Section& section) {
  left_ -= used_;
  section.left_out += section.rows.size() - row_;
  section.rows.resize(row_);
  if (section.forms.size() > row_) section.forms.resize(row_);
  limit_text(section, left_);
  rows_.reset();
  ++section_;
}

Task<> limit_page(Page& page) {
  TurnBudget budget(*(co_await this_context()).loop);
  PageLimiter limiter(page);
  while (limiter.step()) co_await budget.item();
}

}  // namespace weir::admin
