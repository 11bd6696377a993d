#include "weir/admin/detail/pages/page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "weir/base/text/detail/html_escape.hpp"
#include "weir/json.hpp"

namespace weir::admin {
namespace {

std::string formatted(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

/// "1,234,567"
std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
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

std::string_view tone_class(Tone tone) {
  constexpr std::array<std::string_view, 4> names{"", "good", "warning", "bad"};
  return names[static_cast<std::size_t>(tone)];
}

/// Returns a bar for a share. It is a picture, because the policy forbids styles in elements.
std::string bar(double part) {
  const double width = std::clamp(part, 0.0, 1.0) * 100;
  return "<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" "
         "aria-hidden=\"true\"><rect class=\"track\" width=\"100\" height=\"8\"/><rect "
         "class=\"level\" width=\"" +
         formatted("%.1f", width) + "\" height=\"8\"/></svg>";
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

std::string table_html(const Section& section) {
  if (section.rows.empty()) {
    return "<p class=\"empty\">" + escape_html(section.when_empty) + "</p>\n";
  }
  std::string html = "<div class=\"scroll\"><table><thead><tr>";
  for (std::size_t i = 0; i < section.columns.size(); ++i) {
    const bool number = i < section.rows.front().size() && section.rows.front()[i].is_number();
    html += std::string(number ? "<th class=\"number\">" : "<th>") +
            escape_html(section.columns[i].heading) + "</th>";
  }
  if (!section.forms.empty()) html += "<th></th>";
  html += "</tr></thead><tbody>\n";
  for (std::size_t i = 0; i < section.rows.size(); ++i) {
    html += "<tr>";
    for (const Cell& cell : section.rows[i]) {
      html += std::string(cell.is_number() ? "<td class=\"number\">" : "<td>") + cell_html(cell) +
              "</td>";
    }
    if (i < section.forms.size()) html += "<td>" + form_html(section.forms[i]) + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string section_html(const Section& section) {
  std::string html = "<section>\n";
  if (!section.title.empty()) html += "<h2>" + escape_html(section.title) + "</h2>\n";
  if (!section.note.empty()) html += "<p class=\"note\">" + escape_html(section.note) + "</p>\n";
  if (!section.facts.empty()) {
    html += "<dl>";
    for (const Fact& each : section.facts) {
      html += "<div><dt>" + escape_html(each.label) + "</dt><dd>" + cell_html(each.cell) +
              "</dd></div>\n";
    }
    html += "</dl>\n";
  }
  if (!section.columns.empty()) html += table_html(section);
  if (!section.preformatted.empty()) {
    html += "<pre>";
    std::string_view left = section.preformatted;
    while (!left.empty()) {  // escape_html() would replace the ends of the lines
      const std::size_t end = std::min(left.find('\n'), left.size());
      html += escape_html(left.substr(0, end)) + "\n";
      left.remove_prefix(std::min(end + 1, left.size()));
    }
    html += "</pre>\n";
  }
  return html + "</section>\n";
}

std::string facts_json(const Section& section) {
  std::string text = "{";
  for (const Fact& each : section.facts) {
    if (text.size() > 1) text += ",";
    text += json::write(each.key) + ":" + each.cell.to_json();
  }
  return text + "}";
}

std::string rows_json(const Section& section) {
  std::string text = "[";
  for (const auto& row : section.rows) {
    text += text.size() > 1 ? ",{" : "{";
    const std::size_t count = std::min(row.size(), section.columns.size());
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) text += ",";
      text += json::write(section.columns[i].key) + ":" + row[i].to_json();
    }
    text += "}";
  }
  return text + "]";
}

/// Replaces characters that could change the state of a terminal.
std::string safe(std::string text) {
  for (char& each : text) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte < 0x20 || byte == 0x7f) each = '?';
  }
  // The C1 controls, U+0080 to U+009F, are two bytes in UTF-8.
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    const auto next = static_cast<unsigned char>(text[i + 1]);
    if (static_cast<unsigned char>(text[i]) == 0xc2 && next < 0xa0) text[i] = text[i + 1] = '?';
  }
  return text;
}

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

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string marked(const Cell& cell) {
  const std::string_view mark =
      cell.tone() == Tone::bad ? "!! " : (cell.tone() == Tone::warning ? "! " : "");
  return std::string(mark) + safe(cell.to_text());
}

std::string table_text(const Section& section) {
  if (section.rows.empty()) return std::string(section.when_empty) + "\n";
  std::vector<std::size_t> widths;
  for (const Column& each : section.columns) widths.push_back(width_of(each.heading));
  for (const auto& row : section.rows) {
    for (std::size_t i = 0; i < std::min(row.size(), widths.size()); ++i) {
      widths[i] = std::max(widths[i], width_of(marked(row[i])));
    }
  }
  std::string line;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const bool right = i < section.rows.front().size() && section.rows.front()[i].is_number();
    add_padded(line, section.columns[i].heading, widths[i], right);
  }
  std::string text = trimmed(std::move(line));
  for (const auto& row : section.rows) {
    std::string next;
    for (std::size_t i = 0; i < std::min(row.size(), widths.size()); ++i) {
      add_padded(next, marked(row[i]), widths[i], row[i].is_number());
    }
    text += trimmed(std::move(next));
  }
  return text;
}

std::string section_text(const Section& section) {
  std::string text = "\n";
  if (!section.title.empty()) text += safe(section.title) + "\n";
  if (!section.note.empty()) text += safe(section.note) + "\n";
  std::size_t width = 0;
  for (const Fact& each : section.facts) width = std::max(width, width_of(each.label));
  for (const Fact& each : section.facts) {
    std::string line;
    add_padded(line, each.label, width, false);
    text += line + "  " + marked(each.cell) + "\n";
  }
  if (!section.columns.empty()) text += table_text(section);
  std::string_view left = section.preformatted;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    text += safe(std::string(left.substr(0, end))) + "\n";
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return text;
}

}  // namespace

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
  if (const auto* const text = std::get_if<std::string>(&value_)) return json::write(*text);
  if (const auto* const count = std::get_if<std::uint64_t>(&value_)) return std::to_string(*count);
  if (const auto* const real = std::get_if<double>(&value_)) return number_json(*real);
  if (const auto* const flag = std::get_if<bool>(&value_)) return *flag ? "true" : "false";
  return "null";
}

std::string to_html(const Page& page, const Frame& frame) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n";
  // A reload would reset a form that a person fills in.
  const bool has_forms =
      std::ranges::any_of(page.sections, [](const Section& each) { return !each.forms.empty(); });
  if (frame.refresh > Duration::zero() && !has_forms) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(frame.refresh).count();
    html += "<meta http-equiv=\"refresh\" content=\"" + std::to_string(seconds) + "\">\n";
  }
  html +=
      "<title>" + escape_html(frame.title) + ": " + escape_html(page.title) +
      "</title>\n<link rel=\"stylesheet\" href=\"admin.css\">\n</head>\n<body>\n<header><strong>" +
      escape_html(frame.title) + "</strong><nav>";
  for (const MenuEntry& each : frame.menu) {
    html += "<a href=\"" + escape_html(each.path) + "\"" +
            (each.path == page.name ? " class=\"here\" aria-current=\"page\"" : "") + ">" +
            escape_html(each.title) + "</a>";
  }
  html += "</nav></header>\n<main>\n<h1>" + escape_html(page.title) + "</h1>\n";
  if (!page.note.empty()) html += "<p class=\"note\">" + escape_html(page.note) + "</p>\n";
  for (const Section& each : page.sections) html += section_html(each);
  const std::string name = escape_html(page.name);
  return html + "</main>\n<footer>The same page as <a href=\"" + name + ".json\">JSON</a> and <a " +
         "href=\"" + name + ".txt\">text</a>.</footer>\n</body>\n</html>\n";
}

std::string to_json(const Page& page, const Frame& frame) {
  std::string text =
      "{\"page\":" + json::write(page.name) + ",\"title\":" + json::write(frame.title);
  if (!page.note.empty()) text += ",\"note\":" + json::write(page.note);
  for (const Section& each : page.sections) {
    const bool table = !each.columns.empty();
    if (table) text += "," + json::write(each.key) + ":" + rows_json(each);
    if (!each.facts.empty()) {
      const std::string key = std::string(each.key) + (table ? "_facts" : "");
      text += "," + json::write(key) + ":" + facts_json(each);
    }
    if (!each.preformatted.empty()) {
      text += "," + json::write(each.key) + ":" + json::write(each.preformatted);
    }
  }
  return text + "}";
}

std::string to_text(const Page& page, const Frame& frame) {
  std::string text = safe(frame.title) + ": " + safe(page.title) + "\n";
  if (!page.note.empty()) text += safe(page.note) + "\n";
  for (const Section& each : page.sections) text += section_text(each);
  return text;
}

}  // namespace weir::admin
