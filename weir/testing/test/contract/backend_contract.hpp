// The contract of backends as clauses. Each clause is a test that runs on any backend.
#pragma once

#include <string_view>
#include <vector>

#include "weir/testing/test/contract/contract_fixture.hpp"

namespace weir {

/// A requirement of a clause on the machine. Tests leave out clauses whose requirement is not
/// met.
enum class ContractRequirement : unsigned char {
  nothing,
  real_time,  ///< a clock that moves while other threads work
  ipv6,
};

/// One guarantee of weir/loop/contract/detail/backend.hpp or operation.hpp, checked with
/// GoogleTest's macros.
struct ContractClause {
  std::string_view name;  ///< name of letters, digits and underscores
  void (*check)(ContractFixture& fixture);
  ContractRequirement requirement = ContractRequirement::nothing;
};

/// Returns all clauses. weir/loop/test/backend_contract_test.cpp shows how to run them.
std::vector<ContractClause> backend_contract();

// The parts of backend_contract(), each in a source file of its own.
std::vector<ContractClause> contract_of_streams();
std::vector<ContractClause> contract_of_endings();
std::vector<ContractClause> contract_of_hangups();
std::vector<ContractClause> contract_of_cancelling();
std::vector<ContractClause> contract_of_connecting();
std::vector<ContractClause> contract_of_memory();
std::vector<ContractClause> contract_of_waiting();
std::vector<ContractClause> contract_of_datagrams();

}  // namespace weir
