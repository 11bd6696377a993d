// Structs to and from JSON, without macros and without a line of code for a field.
//
//   struct Address { std::string street; std::optional<int> zip; };
//   struct User { std::string name; std::vector<Address> addresses; };
//
//   auto user = weir::json::read<User>(text);   // or: addresses[3].zip: expected an integer, ...
//   std::string text = weir::json::write(*user);
//
// What a C++ type is in JSON:
//   a struct with public fields only      an object; see below
//   bool, integers, float, double         true, false, numbers; 64 bits exactly, 20.0 is no integer
//   std::string                           a string
//   enums                                 integers, or names: see json::enumerators
//   std::optional, std::unique_ptr        null or the value; as a field it may be missing, and an
//                                         empty one is left out
//   std::monostate, std::nullptr_t        null
//   vectors, lists, deques, sets          an array
//   std::array, std::pair, std::tuple     an array of just that length
//   maps with strings or integers         an object
//   std::variant                          whichever alternative looks like it, told by the kind of
//                                         value, and structs by the names of their fields
//   std::string_view, const char*         written as a string, never read
//   anything else                         what its json::Codec makes of it
//
// A struct has at most 32 fields, no base class, no C arrays and no bit-fields. All its fields but
// optionals and pointers must be there, each once, and no others, in any order; ReadOptions are
// more lenient. json::renames gives fields other names, and a field called `class_` is "class".
#pragma once

#include "weir/json/read.hpp"
#include "weir/json/write.hpp"
