// The contract of backends, clause by clause, as tests that run on any of them.
#pragma once

#include <string_view>
#include <vector>

#include "weir/testing/test/contract/contract_fixture.hpp"

namespace weir {

/// What a clause needs of the machine; who instantiates the tests leaves out what it has not.
enum class ContractNeed : unsigned char {
  nothing,
  real_time,  ///< a clock that moves while other threads work
  ipv6,
};

/// One promise of weir/loop/contract/detail/backend.hpp or operation.hpp, checked with GoogleTest's macros.
struct ContractClause {
  std::string_view name;  ///< letters, digits and underscores
  void (*check)(ContractBench& bench);
  ContractNeed need = ContractNeed::nothing;
};

/// All of them. How to use it: weir/loop/test/backend_contract_test.cpp.
std::vector<ContractClause> backend_contract();

// The parts of backend_contract(), each in contract_<part>.cpp.
std::vector<ContractClause> contract_of_streams();
std::vector<ContractClause> contract_of_endings();
std::vector<ContractClause> contract_of_hangups();
std::vector<ContractClause> contract_of_cancelling();
std::vector<ContractClause> contract_of_connecting();
std::vector<ContractClause> contract_of_memory();
std::vector<ContractClause> contract_of_waiting();
std::vector<ContractClause> contract_of_datagrams();

}  // namespace weir
