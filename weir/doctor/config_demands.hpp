// Reads what a configuration file asks of its machine, without the program that it belongs to.
#pragma once

#include <expected>

#include "weir/config/source/error.hpp"
#include "weir/config/source/sources.hpp"
#include "weir/doctor/doctor.hpp"

namespace weir::doctor {

/// Returns what the file asks for. The struct of the program is unknown, so this function looks for
/// the names of Weir's own options in all tables; the guide lists them. Other keys, and values of
/// another kind, are ignored. No code of the program runs.
/// Errors: a file that cannot be read or is no TOML.
std::expected<DoctorOptions, config::Errors> demands_of(const config::FileText& file);

}  // namespace weir::doctor
