// The list of all clauses of the backend contract.
#include "weir/testing/test/contract/backend_contract.hpp"

namespace weir {

std::vector<ContractClause> backend_contract() {
  std::vector<ContractClause> all;
  for (const auto part :
       {contract_of_streams, contract_of_endings, contract_of_hangups, contract_of_cancelling,
        contract_of_connecting, contract_of_memory, contract_of_waiting, contract_of_datagrams}) {
    for (const ContractClause& clause : part()) all.push_back(clause);
  }
  return all;
}

}  // namespace weir
