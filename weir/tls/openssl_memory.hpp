// The memory of OpenSSL, which a program that owns its process may let erase.
#pragma once

namespace weir::tls {

/// Makes OpenSSL erase memory before it frees it. It frees decrypted tickets, sessions and the
/// state of handshakes with secrets in them, also after their connections. Weir erases its own
/// secrets always.
///
/// The memory functions of OpenSSL are those of the whole process. A library in the program of
/// others therefore never sets them, and leaves this call to the program. Call it first in main():
/// OpenSSL keeps its functions as soon as it has allocated memory. ProgramOptions::from_args()
/// calls it. Returns: false if OpenSSL has allocated memory before, or has the functions of another
/// caller. Threads: one, before others use OpenSSL.
bool erase_openssl_memory() noexcept;

}  // namespace weir::tls
