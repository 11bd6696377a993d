"""Tests of the plans."""

import unittest

from plan_fixture import TREE, PlanTestCase


class PlannerTest(PlanTestCase):
    def test_the_check_always_runs_and_first(self):
        plan = self.plan_of("CHANGELOG.md")
        self.assertEqual([step.command for step in plan.steps], [["./dev", "check"]])
        self.assertEqual(plan.left, [])

    def test_a_unit_runs_its_test_and_those_of_its_room(self):
        self.assertEqual(self.commands_of("weir/base/text/hex.cpp"), [
            "./dev narrow asan ^asan:(base:([^/]*/)?(Case|Hex)(/.*)?)$ weir_base_test",
            "./dev bench --gate"])

    def test_a_changed_test_runs_alone(self):
        self.assertEqual(self.commands_of("weir/base/text/hex_test.cpp"), [
            "./dev narrow asan ^asan:(base:([^/]*/)?(Hex)(/.*)?)$ weir_base_test"])

    def test_users_of_a_header_run_in_one_other_binary_and_never_in_system_tests(self):
        tree = TREE | {"tests/late_test.cpp": '#include "weir/base/time.hpp"\nTEST(Late, A) {}\n'}
        plan = self.plan_of("weir/base/time.hpp", tree=tree)
        self.assertEqual(plan.steps[1].command[3:], [
            "^asan:(base:([^/]*/)?(Time)(/.*)?|task:([^/]*/)?(Sleep)(/.*)?)$",
            "weir_base_test", "weir_task_test"])
        self.assertEqual(plan.left[:3], [
            f"{binary}: 1 test file including a changed header"
            for binary in ("weir_tls_test", "weir_http_test", "weir_system_test")])

    def test_other_suites_of_the_reached_floors_are_left(self):
        plan = self.plan_of("weir/base/text/hex.cpp")
        self.assertEqual(plan.left, [
            "other suites of the floors that the change reaches: 1 of base",
            "the system tests, the simulated services and the fuzz targets"])

    def test_reasons_name_the_path_and_how_the_tests_relate_to_it(self):
        plan = self.plan_of("weir/base/text/hex.hpp")
        self.assertEqual(plan.steps[1].reasons, [
            "weir/base/text/hex.hpp: its own test, 1 test file of its room"])
        self.assertEqual(plan.steps[2].reasons,
                         ["weir/base/text/hex.hpp: is on the request path"])

    def test_coroutines_in_sources_run_gcc_and_those_in_tests_do_not(self):
        gcc = "./dev narrow gcc ^gcc:(task:([^/]*/)?(Sleep)(/.*)?)$ weir_task_test"
        self.assertIn(gcc, self.commands_of("weir/task/sleep.cpp"))
        self.write({"weir/task/sleep_test.cpp": "TEST(Sleep, A) { co_await 1; }\n"})
        self.assertFalse([command for command in self.commands_of("weir/task/sleep_test.cpp")
                          if " gcc " in command])

    def test_rooms_with_threads_and_files_with_atomics_run_tsan(self):
        self.assertIn("./dev narrow tsan ^tsan:(net:([^/]*/)?(Tcp)(/.*)?)$ weir_net_test",
                      self.commands_of("weir/net/tcp.cpp"))
        self.assertEqual(
            self.commands_of("weir/profile/sampler.cpp")[-1],
            "./dev narrow tsan ^tsan:(profile:([^/]*/)?(Sampler)(/.*)?)$ weir_profile_test")
        self.assertFalse([command for command in self.commands_of("weir/profile/sampler.hpp")
                          if "tsan" in command])

    def test_a_fixture_runs_the_tests_that_include_it(self):
        self.assertEqual(
            self.commands_of("weir/net/test/net_fixture.hpp")[0],
            "./dev narrow asan ^asan:(net:([^/]*/)?(Tcp)(/.*)?|tls:([^/]*/)?(Tls)(/.*)?)$ "
            "weir_net_test weir_tls_test")

    def test_a_deleted_file_runs_the_tests_of_its_room(self):
        self.assertIn("(Case|Hex)", self.commands_of("weir/base/text/gone.hpp")[0])
        self.assertEqual(self.commands_of("weir/base/text/gone_test.cpp"), [])

    def test_a_change_of_the_toolchain_configures_everything(self):
        for path in ("CMakeLists.txt", "cmake/WeirTargets.cmake", "CMakePresets.json", "dev"):
            plan = self.plan_of(path)
            self.assertIn("for preset in asan release gcc tsan", plan.steps[-1].command[2])
            self.assertEqual(plan.left, ["all tests: a file of the toolchain changed"])
        self.assertIn("bash -n dev", self.commands_of("dev"))


class OtherFilesTest(PlanTestCase):
    def test_an_example_runs_its_pages_and_the_system_tests_that_name_it(self):
        self.assertEqual(self.commands_of("examples/hello.cpp"), [
            "./dev narrow asan ^asan:(system:([^/]*/)?(Examples)(/.*)?)$ weir_system_test",
            "./dev narrow release - example_hello",
            "python3 tests/guide_test.py --build build/release docs/guide/first.md"])

    def test_an_example_runs_the_scripts_that_start_it(self):
        self.assertEqual(self.commands_of("examples/traces.cpp"),
                         ["./dev narrow asan ^asan:(otlp)$ example_traces"])

    def test_an_example_without_tests_is_built_and_so_are_the_users_of_its_header(self):
        for path in ("examples/quiet.cpp", "examples/quiet.hpp"):
            self.assertEqual(self.commands_of(path), ["./dev narrow release - example_quiet"])
        self.assertEqual(self.commands_of("examples/gone.cpp"), [])

    def test_a_page_runs_its_shell_lines(self):
        self.assertEqual(self.commands_of("docs/guide/first.md"), [
            "./dev narrow release - example_hello",
            "python3 tests/guide_test.py --build build/release docs/guide/first.md"])
        self.assertEqual(self.commands_of("docs/world.md"), [])

    def test_fuzz_targets_replay_their_corpus(self):
        for path in ("fuzz/json_fuzz.cpp", "fuzz/corpus/json_fuzz/seed", "fuzz/require.hpp",
                     "fuzz/replay/main.cpp"):
            self.assertEqual(self.commands_of(path),
                             ["./dev narrow asan ^asan:(fuzz_json_fuzz_replay)$ fuzz_json_fuzz"])
        self.assertEqual(self.commands_of("fuzz/gone_fuzz.cpp"), [])

    def test_scripts_run_the_self_tests_of_their_folder(self):
        self.assertEqual(self.commands_of("tools/check/words.py"),
                         ["python3 -m unittest discover -s tools/check -p *_test.py"])
        self.assertEqual(self.commands_of("bench/run.py"),
                         ["python3 -m unittest discover -s bench -p *_test.py"])

    def test_the_gate_runs_if_its_own_files_change(self):
        self.assertIn("./dev bench --gate", self.commands_of("bench/gate/operations.cpp"))
        self.assertIn("./dev bench --gate", self.commands_of("bench/gate.py"))

    def test_programs_are_built(self):
        self.assertEqual(self.commands_of("bench/inside/hop.cpp"),
                         ["./dev narrow release - inside_hop"])
        self.assertEqual(self.commands_of("tools/autobahn/client.cpp"),
                         ["./dev narrow asan - autobahn_client"])
        for path in ("canned.hpp", "arguments/arguments.hpp", "arguments/arguments.cpp"):
            self.assertEqual(self.commands_of(f"bench/limit/{path}"),
                             ["./dev narrow release - epoll_limit"], path)

    def test_simulated_services_run_the_nearest_tests(self):
        self.assertIn("(Heap)(/.*)?)$ simulate_tool_test",
                      self.commands_of("tools/simulate/heap.hpp")[0])
        self.assertIn("(Heap|SimulatedTls)", self.commands_of("tools/simulate/names.cpp")[0])

    def test_files_of_system_tests_run_what_uses_them(self):
        self.assertIn("(Examples)", self.commands_of("tests/server.cpp")[0])
        self.assertIn("(Cases)", self.commands_of("tests/data/cases.json")[0])
        self.assertEqual(self.commands_of("tests/otlp_test.py"),
                         ["./dev narrow asan ^asan:(otlp)$ example_traces"])
        self.assertEqual(self.commands_of("tests/compile_errors_test.py"),
                         ["python3 tests/compile_errors_test.py"])
        plan = self.plan_of("tests/consumer/main.cpp")
        self.assertEqual(plan.left, ["tests/consumer/main.cpp: ./dev test --ci runs it"])

    def test_one_step_for_each_preset_joins_all_paths(self):
        commands = self.commands_of("weir/base/text/hex_test.cpp", "weir/net/tcp_test.cpp",
                                    "fuzz/json_fuzz.cpp")
        self.assertEqual(commands[0],
                         "./dev narrow asan ^asan:(base:([^/]*/)?(Hex)(/.*)?|"
                         "net:([^/]*/)?(Tcp)(/.*)?|fuzz_json_fuzz_replay)$ "
                         "weir_base_test weir_net_test fuzz_json_fuzz")


if __name__ == "__main__":
    unittest.main()
