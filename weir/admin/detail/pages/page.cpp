#include "weir/admin/detail/pages/page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "weir/admin/detail/pages/page_style.hpp"
#include "weir/base/text/detail/printable.hpp"
#include "weir/json.hpp"
#include "weir/task/context.hpp"
#include "weir/task/detail/turn_budget.hpp"

namespace weir::admin {
namespace {

std::string formatted(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array units{"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return formatted(value < 10 ? "%.1f " : "%.0f ", value) + units[unit];
}

std::string time_text(double seconds) {
  const double size = std::fabs(seconds);
  if (size == 0) return "0 s";
  if (size < 1e-3) return formatted("%.0f us", seconds * 1e6);
  if (size < 0.01) return formatted("%.1f ms", seconds * 1e3);
  if (size < 1) return formatted("%.0f ms", seconds * 1e3);
  if (size < 120) return formatted("%.1f s", seconds);
  if (size < 7200) return formatted("%.0f min", seconds / 60);
  if (size < 172800) return formatted("%.1f h", seconds / 3600);
  return formatted("%.1f days", seconds / 86400);
}

std::string rate_text(double rate) {
  if (std::fabs(rate) < 100) return formatted("%.1f", rate);
  return rate < 0 ? "-" + grouped(static_cast<std::uint64_t>(-rate))
                  : grouped(static_cast<std::uint64_t>(rate));
}

std::string number_json(double value) {
  return std::isfinite(value) ? formatted("%.9g", value) : "null";
}

std::unique_ptr<PageStyle> make_style(const Frame& frame, Format format) {
  switch (format) {
    case Format::html:
      return make_html_style(frame);
    case Format::json:
      return make_json_style(frame);
    case Format::text:
      break;
  }
  return make_text_style(frame);
}

std::string render_now(const Page& page, const Frame& frame, Format format) {
  PageRenderer renderer(page, frame, format);
  while (renderer.step()) continue;
  return std::move(renderer.output());
}

}  // namespace

std::string left_out_note(const Section& section) {
  if (section.left_out == 0) return {};
  return grouped(section.left_out) +
         (section.left_out == 1 ? " more row is not shown." : " more rows are not shown.");
}

Cell Cell::time(Duration length) {
  return {Form::time, std::chrono::duration<double>(length).count()};
}

std::string Cell::to_text() const {
  if (std::holds_alternative<std::monostate>(value_)) return "-";
  switch (form_) {
    case Form::text:
      return std::get<std::string>(value_);
    case Form::number:
      return grouped(std::get<std::uint64_t>(value_));
    case Form::bytes:
      return size_text(std::get<std::uint64_t>(value_));
    case Form::time:
      return time_text(std::get<double>(value_));
    case Form::share:
      return formatted("%.1f %%", 100 * std::get<double>(value_));
    case Form::rate:
      return rate_text(std::get<double>(value_));
    case Form::flag:
      return std::get<bool>(value_) ? "yes" : "no";
  }
  return "-";
}

std::string Cell::to_json() const {
  if (const auto* const text = std::get_if<std::string>(&value_))
    return to_printable_json(json::write(*text));
  if (const auto* const count = std::get_if<std::uint64_t>(&value_)) return std::to_string(*count);
  if (const auto* const real = std::get_if<double>(&value_)) return number_json(*real);
  if (const auto* const flag = std::get_if<bool>(&value_)) return *flag ? "true" : "false";
  return "null";
}

PageRenderer::PageRenderer(Page page, const Frame& frame, Format format)
    : page_(std::move(page)), style_(make_style(frame, format)) {}

PageRenderer::~PageRenderer() = default;

bool PageRenderer::step() {
  Section* const section = section_ < page_.sections.size() ? &page_.sections[section_] : nullptr;
  switch (stage_) {
    case Stage::page:
      style_->begin_page(out_, page_);
      begin_section();
      return true;
    case Stage::measure:
      if (place_ < section->rows.size()) {
        style_->measure(*section, place_++);
        return true;
      }
      stage_ = Stage::section;
      return true;
    case Stage::section:
      style_->begin_section(out_, *section);
      place_ = 0;
      stage_ = Stage::rows;
      return true;
    case Stage::rows:
      if (place_ < section->rows.size()) {
        style_->row(out_, *section, place_);
        // The first row tells which columns have numbers.
        if (place_ > 0) std::vector<Cell>().swap(section->rows[place_]);
        ++place_;
        return true;
      }
      style_->end_rows(out_, *section);
      place_ = 0;
      stage_ = section->preformatted.empty() ? Stage::section_end : Stage::lines;
      return true;
    case Stage::lines:
      step_lines();
      return true;
    case Stage::section_end:
      style_->end_section(out_);
      ++section_;
      begin_section();
      return true;
    case Stage::done:
      return false;
  }
  return false;
}

void PageRenderer::begin_section() {
  place_ = 0;
  if (section_ < page_.sections.size()) {
    stage_ = style_->measures() ? Stage::measure : Stage::section;
    return;
  }
  style_->end_page(out_, page_);
  stage_ = Stage::done;
}

/// Renders about one KiB of a preformatted text, up to the end of a line.
void PageRenderer::step_lines() {
  constexpr std::size_t enough = 1024;
  const std::string_view text = page_.sections[section_].preformatted;
  const std::size_t end =
      text.size() - place_ <= enough ? text.npos : text.find('\n', place_ + enough);
  const std::size_t next = end == text.npos ? text.size() : end + 1;
  style_->lines(out_, page_.sections[section_], text.substr(place_, next - place_), place_ == 0,
                next == text.size());
  place_ = next;
  if (place_ == text.size()) stage_ = Stage::section_end;
}

Task<std::string> render(Page page, const Frame& frame, Format format) {
  TurnBudget budget(*(co_await this_context()).loop);
  PageRenderer renderer(std::move(page), frame, format);
  while (renderer.step()) co_await budget.item();
  co_return std::move(renderer.output());
}

std::string to_html(const Page& page, const Frame& frame) {
  return render_now(page, frame, Format::html);
}

std::string to_json(const Page& page, const Frame& frame) {
  return render_now(page, frame, Format::json);
}

std::string to_text(const Page& page, const Frame& frame) {
  return render_now(page, frame, Format::text);
}

Page table_page(std::string_view name, std::string title, std::string note, Section table) {
  Page page{.name = name, .title = std::move(title), .note = std::move(note)};
  table.key = name;
  page.sections.push_back(std::move(table));
  return page;
}

}  // namespace weir::admin
