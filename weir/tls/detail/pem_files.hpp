// Reading the files of TLS: PEM texts and the trusted CAs of the system.
#pragma once

#include <string>

#include "weir/task/task.hpp"
#include "weir/tls/certificate/error.hpp"
#include "weir/tls/options.hpp"

namespace weir::tls::detail {

/// Returns the content of a file of at most 4 MiB.
/// Errors: Error::unreadable_file, Errc::cancelled.
/// Cancel: passed to the read.
Task<Outcome<std::string>> read_pem(std::string path);

/// Returns the certificates that `trust` names, in PEM. The system's file is the first that exists
/// of those that Debian, Red Hat, SUSE and Alpine use.
/// Errors: Error::unreadable_file, Errc::cancelled.
/// Cancel: passed to the reads.
/// Lifetime: `trust` outlives the call.
Task<Outcome<std::string>> read_trust(const Trust& trust);

}  // namespace weir::tls::detail
