// A text as one word of a command line, for commands that people paste into a shell.
#pragma once

#include <string>
#include <string_view>

namespace weir::doctor {

/// Returns the text as one word of a POSIX shell: in single quotes, unless each of its characters
/// is a letter, a digit or one of `_@%+=:,./-`. A text of a file so cannot be a command of its own.
std::string shell_word(std::string_view text);

}  // namespace weir::doctor
