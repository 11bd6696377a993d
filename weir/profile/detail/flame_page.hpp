// Profiles as text and as a page: folded stacks and a flame graph.
#pragma once

#include <string>

#include "weir/profile/detail/stack_collection.hpp"

namespace weir::profile {

/// Returns one line for each stack: the frames from the outermost one on, with semicolons between
/// them, a blank and the number of samples. The first frame is the route, or "(no request)". This
/// is the format of flamegraph.pl.
/// Errors: throws std::bad_alloc.
std::string to_folded(const Profile& profile);

/// Returns an HTML page with a flame graph and tables of the heaviest functions and routes. It has
/// no script, no style sheet and no content of other origins, so flame_page_policy can forbid all
/// of them. Each rectangle shows its function and its share when the pointer is over it.
/// Errors: throws std::bad_alloc.
std::string to_flame_page(const Profile& profile);

/// The Content-Security-Policy of the page.
inline constexpr char flame_page_policy[] =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

}  // namespace weir::profile
