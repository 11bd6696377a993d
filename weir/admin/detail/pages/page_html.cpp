// Pages as HTML.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "weir/admin/detail/pages/page_style.hpp"
#include "weir/base/text/detail/html_escape.hpp"

namespace weir::admin {
namespace {

std::string_view tone_class(Tone tone) {
  constexpr std::array<std::string_view, 4> names{"", "good", "warning", "bad"};
  return names[static_cast<std::size_t>(tone)];
}

/// Returns a bar for a share. It is a picture, because the policy forbids styles in elements.
std::string bar(double part) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%.1f", std::clamp(part, 0.0, 1.0) * 100);
  return "<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" "
         "aria-hidden=\"true\"><rect class=\"track\" width=\"100\" height=\"8\"/><rect "
         "class=\"level\" width=\"" +
         std::string(text.data()) + "\" height=\"8\"/></svg>";
}

std::string cell_html(const Cell& cell) {
  std::string text = escape_html(cell.to_text());
  if (cell.is_share()) text = bar(cell.share()) + text;
  if (!cell.link().empty()) text = "<a href=\"" + escape_html(cell.link()) + "\">" + text + "</a>";
  if (cell.tone() != Tone::plain) {
    text = "<span class=\"" + std::string(tone_class(cell.tone())) + "\">" + text + "</span>";
  }
  return text;
}

std::string form_html(const Form& form) {
  std::string html = "<form method=\"post\" action=\"" + escape_html(form.action) + "\">";
  for (const auto& [name, value] : form.hidden) {
    html += "<input type=\"hidden\" name=\"" + escape_html(name) + "\" value=\"" +
            escape_html(value) + "\">";
  }
  html += "<select name=\"" + escape_html(form.choice) + "\">";
  for (const std::string& each : form.choices) {
    html += std::string("<option") + (each == form.chosen ? " selected" : "") + ">" +
            escape_html(each) + "</option>";
  }
  return html + "</select><button>" + escape_html(form.label) + "</button></form>";
}

class HtmlStyle final : public PageStyle {
 public:
  using PageStyle::PageStyle;

  void begin_page(std::string& out, const Page& page) override;
  void begin_section(std::string& out, const Section& section) override;
  void row(std::string& out, const Section& section, std::size_t row) override;
  void end_rows(std::string& out, const Section& section) override;
  void lines(std::string& out, const Section& section, std::string_view text, bool first,
             bool last) override;
  void end_section(std::string& out) override { out += "</section>\n"; }
  void end_page(std::string& out, const Page& page) override;
};

void HtmlStyle::begin_page(std::string& out, const Page& page) {
  out +=
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n";
  // A reload would reset a form that a person fills in.
  const bool has_forms =
      std::ranges::any_of(page.sections, [](const Section& each) { return !each.forms.empty(); });
  if (frame().refresh > Duration::zero() && !has_forms) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(frame().refresh).count();
    out += "<meta http-equiv=\"refresh\" content=\"" + std::to_string(seconds) + "\">\n";
  }
  out +=
      "<title>" + escape_html(frame().title) + ": " + escape_html(page.title) +
      "</title>\n<link rel=\"stylesheet\" href=\"admin.css\">\n</head>\n<body>\n<header><strong>" +
      escape_html(frame().title) + "</strong><nav>";
  for (const MenuEntry& each : frame().menu) {
    out += "<a href=\"" + escape_html(each.path) + "\"" +
           (each.path == page.name ? " class=\"here\" aria-current=\"page\"" : "") + ">" +
           escape_html(each.title) + "</a>";
  }
  out += "</nav></header>\n<main>\n<h1>" + escape_html(page.title) + "</h1>\n";
  if (!page.note.empty()) out += "<p class=\"note\">" + escape_html(page.note) + "</p>\n";
}

void HtmlStyle::begin_section(std::string& out, const Section& section) {
  out += "<section>\n";
  if (!section.title.empty()) out += "<h2>" + escape_html(section.title) + "</h2>\n";
  if (!section.note.empty()) out += "<p class=\"note\">" + escape_html(section.note) + "</p>\n";
  if (!section.facts.empty()) {
    out += "<dl>";
    for (const Fact& each : section.facts) {
      out += "<div><dt>" + escape_html(each.label) + "</dt><dd>" + cell_html(each.cell) +
             "</dd></div>\n";
    }
    out += "</dl>\n";
  }
  if (section.columns.empty()) return;
  if (section.rows.empty()) {
    out += "<p class=\"empty\">" + escape_html(section.when_empty) + "</p>\n";
    return;
  }
  out += "<div class=\"scroll\"><table><thead><tr>";
  for (std::size_t i = 0; i < section.columns.size(); ++i) {
    const bool number = i < section.rows.front().size() && section.rows.front()[i].is_number();
    out += std::string(number ? "<th class=\"number\">" : "<th>") +
           escape_html(section.columns[i].heading) + "</th>";
  }
  if (!section.forms.empty()) out += "<th></th>";
  out += "</tr></thead><tbody>\n";
}

void HtmlStyle::row(std::string& out, const Section& section, std::size_t row) {
  out += "<tr>";
  for (const Cell& cell : section.rows[row]) {
    out += cell.is_number() ? "<td class=\"number\">" : "<td>";
    out += cell_html(cell) + "</td>";
  }
  if (row < section.forms.size()) out += "<td>" + form_html(section.forms[row]) + "</td>";
  out += "</tr>\n";
}

void HtmlStyle::end_rows(std::string& out, const Section& section) {
  if (section.columns.empty()) return;
  if (!section.rows.empty()) out += "</tbody></table></div>\n";
  if (section.left_out > 0) out += "<p class=\"note\">" + left_out_note(section) + "</p>\n";
}

void HtmlStyle::lines(std::string& out, const Section&, std::string_view text, bool first,
                      bool last) {
  if (first) out += "<pre>";
  while (!text.empty()) {  // escape_html() would replace the ends of the lines
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += escape_html(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (last) out += "</pre>\n";
}

void HtmlStyle::end_page(std::string& out, const Page& page) {
  const std::string name = escape_html(page.name);
  out += "</main>\n<footer>The same page as <a href=\"" + name + ".json\">JSON</a> and <a href=\"" +
         name + ".txt\">text</a>.</footer>\n</body>\n</html>\n";
}

}  // namespace

std::unique_ptr<PageStyle> make_html_style(const Frame& frame) {
  return std::make_unique<HtmlStyle>(frame);
}

}  // namespace weir::admin
