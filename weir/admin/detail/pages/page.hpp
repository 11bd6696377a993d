// The model of an admin page: sections with facts and tables, rendered as HTML, JSON and text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weir/base/time.hpp"
#include "weir/task/task.hpp"

namespace weir::admin {

/// The weight of a cell for the reader. HTML shows it as a colour, text as a mark.
enum class Tone : std::uint8_t { plain, good, warning, bad };

/// One value of a page. HTML and text show it for people, such as "1.5 MiB"; JSON has the plain
/// number, and null for a value that is unknown.
class Cell {
 public:
  /// An unknown value, shown as a dash.
  Cell() noexcept = default;
  Cell(std::string text) : value_(std::move(text)) {}
  Cell(std::string_view text) : value_(std::string(text)) {}
  Cell(const char* text) : value_(std::string(text)) {}

  static Cell number(std::uint64_t count) { return {Form::number, count}; }
  static Cell bytes(std::uint64_t count) { return {Form::bytes, count}; }
  /// A duration; JSON has seconds.
  static Cell time(Duration length);
  /// A share from 0 to 1; HTML shows a bar.
  static Cell share(double part) { return {Form::share, part}; }
  /// A number for each second.
  static Cell rate(double per_second) { return {Form::rate, per_second}; }
  static Cell flag(bool value) { return {Form::flag, value}; }

  Cell with(Tone tone) && {
    tone_ = tone;
    return std::move(*this);
  }
  /// Makes the cell a link to another page, such as "cores".
  Cell linked(std::string target) && {
    link_ = std::move(target);
    return std::move(*this);
  }

  Tone tone() const noexcept { return tone_; }
  const std::string& link() const noexcept { return link_; }
  bool is_number() const noexcept { return form_ != Form::text && form_ != Form::flag; }
  bool is_share() const noexcept { return form_ == Form::share; }
  /// Returns the share of a cell for which is_share() is true.
  double share() const noexcept { return std::get<double>(value_); }
  /// Returns the value for people, without any escapes.
  std::string to_text() const;
  /// Returns the value as JSON.
  std::string to_json() const;

 private:
  enum class Form : std::uint8_t { text, number, bytes, time, share, rate, flag };
  using Value = std::variant<std::monostate, std::string, std::uint64_t, double, bool>;
  Cell(Form form, Value value) noexcept : value_(std::move(value)), form_(form) {}

  Value value_;
  std::string link_;
  Form form_ = Form::text;
  Tone tone_ = Tone::plain;
};

/// A column: its name in JSON, and its heading for people.
struct Column {
  std::string_view key;
  std::string_view heading;
};

/// A named value of a section.
struct Fact {
  std::string_view key;
  std::string_view label;
  Cell cell;
};

/// A button that sends a form by POST: two values of the user, and the path.
struct Form {
  std::string action;                                       ///< path, relative to the page
  std::vector<std::pair<std::string, std::string>> hidden;  ///< names and values
  std::string choice;                                       ///< name of the chosen value
  std::vector<std::string> choices;
  std::string chosen;  ///< the present choice
  std::string label;   ///< text of the button
};

/// A part of a page: facts, and a table with a row for each thing.
struct Section {
  std::string_view key = {};  ///< name of the part in JSON
  std::string title = {};
  std::string note = {};
  std::vector<Fact> facts = {};
  std::vector<Column> columns = {};
  std::vector<std::vector<Cell>> rows = {};
  std::uint64_t left_out = 0;  ///< further rows, which the page does not show
  std::string_view when_empty = "None.";
  std::vector<Form> forms = {};   ///< in HTML only, one for each row
  std::string preformatted = {};  ///< a text with lines of its own
};

/// A page that is rendered in three formats.
struct Page {
  std::string_view name;  ///< last part of its path, such as "cores"
  std::string title;
  std::string note = {};
  std::vector<Section> sections = {};
};

/// An entry of the menu on all pages.
struct MenuEntry {
  std::string path;  ///< relative to the page
  std::string title;
};

/// The surroundings of all pages of a program.
struct Frame {
  std::string title;  ///< title of the program
  std::vector<MenuEntry> menu = {};
  Duration refresh{};  ///< reload interval; zero for no reload
};

/// The formats of a page.
///
/// HTML is a complete page without a script. Its style sheet is `admin.css` in the same directory.
/// All texts are escaped.
///
/// JSON is {"page": "cores", "title": ..., KEY: {facts}, KEY: [rows]}. A section with facts and
/// rows has its rows in KEY, and its facts in KEY_facts.
///
/// Text has aligned columns for terminals. Control characters of values become question marks.
enum class Format : std::uint8_t { html, json, text };

/// Returns the format that `asked` names, which is the value of ?format=. If `asked` is empty,
/// returns the format that the Accept header prefers (RFC 9110 §12.5.1), the first one of several
/// with equal quality. Returns HTML for all other values.
Format choose_format(std::string_view asked, std::string_view accept) noexcept;

class PageStyle;

/// Renders a page in small pieces, so that a long page can be divided into several turns of a loop.
class PageRenderer {
 public:
  /// `frame` outlives the object.
  PageRenderer(Page page, const Frame& frame, Format format);
  ~PageRenderer();

  /// Renders a piece, such as a row, and frees its cells. Returns false at the end of the page.
  bool step();
  /// Returns the text that is rendered so far.
  std::string& output() noexcept { return out_; }

 private:
  enum class Stage : std::uint8_t { page, measure, section, rows, lines, section_end, done };
  void begin_section();
  void step_lines();

  Page page_;
  std::unique_ptr<PageStyle> style_;
  std::string out_;
  Stage stage_ = Stage::page;
  std::size_t section_ = 0;
  std::size_t place_ = 0;  // a row, or a position in a preformatted text
};

/// Renders a page, in several turns of the loop if it is long.
/// Errors: throws std::bad_alloc.
/// Cancel: not affected.
/// Lifetime: `frame` outlives the task.
Task<std::string> render(Page page, const Frame& frame, Format format);

/// These functions render a whole page in the present turn.
std::string to_html(const Page& page, const Frame& frame);
std::string to_json(const Page& page, const Frame& frame);
std::string to_text(const Page& page, const Frame& frame);

/// Returns the style sheet of all pages.
std::string_view stylesheet() noexcept;

/// Returns a page with one table, whose key is the name of the page.
Page table_page(std::string_view name, std::string title, std::string note, Section table);

}  // namespace weir::admin
