// Public header of weir/http_testing: a client for tests of HTTP services, and the World.
#pragma once

#include "weir/http_testing/raw_server.hpp"
#include "weir/http_testing/test_client.hpp"
#include "weir/sim.hpp"
