// The three formats of a page, each as functions that render its pieces.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "weir/admin/detail/pages/page.hpp"
#include "weir/base/text/detail/grouped_number.hpp"

namespace weir::admin {

/// Renders the pieces of a page in one format. PageRenderer calls the functions in this order:
/// begin_page(); for each section begin_section(), row() for each row, end_rows(), lines() for
/// parts of the preformatted text if there is one, end_section(); end_page().
class PageStyle {
 public:
  explicit PageStyle(const Frame& frame) noexcept : frame_(frame) {}
  virtual ~PageStyle() = default;
  PageStyle(const PageStyle&) = delete;
  PageStyle& operator=(const PageStyle&) = delete;

  /// Returns true if measure() must see each row before begin_section().
  virtual bool measures() const noexcept { return false; }
  virtual void measure(const Section&, std::size_t /*row*/) {}

  virtual void begin_page(std::string& out, const Page& page) = 0;
  virtual void begin_section(std::string& out, const Section& section) = 0;
  virtual void row(std::string& out, const Section& section, std::size_t row) = 0;
  virtual void end_rows(std::string& out, const Section& section) = 0;
  /// `text` has whole lines. `first` and `last` are true for the first and the last part.
  virtual void lines(std::string& out, const Section& section, std::string_view text, bool first,
                     bool last) = 0;
  virtual void end_section(std::string& out) = 0;
  virtual void end_page(std::string& out, const Page& page) = 0;

 protected:
  const Frame& frame() const noexcept { return frame_; }

 private:
  const Frame& frame_;
};

std::unique_ptr<PageStyle> make_html_style(const Frame& frame);
std::unique_ptr<PageStyle> make_json_style(const Frame& frame);
std::unique_ptr<PageStyle> make_text_style(const Frame& frame);

using weir::detail::grouped;

/// Returns "12 more rows are not shown."; empty if all are.
std::string left_out_note(const Section& section);

}  // namespace weir::admin
