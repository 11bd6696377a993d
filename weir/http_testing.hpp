// Public header of weir/http_testing: a client for unit tests of routers.
#pragma once

#include "weir/http_testing/test_client.hpp"
