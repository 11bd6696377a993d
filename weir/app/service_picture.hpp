// The services of an app as a picture: a graph in SVG.
#pragma once

#include <string>
#include <string_view>

#include "weir/app/lifecycle/app_status.hpp"

namespace weir::drawing {

/// An <svg> element for a page: a box for each service, who takes others to the left of them. It
/// has no style and no script of its own; see service_style(). All texts are escaped.
std::string draw_services(const Explanation& explanation);

/// The style sheet of the picture and of the page around it.
std::string_view service_style() noexcept;

}  // namespace weir::drawing
