"""Tests the verdicts on HTTP clients."""

import unittest

import clients


def result(figure, busy=0.99, errors=0):
    return {"figure": figure, "busy": busy, "rate": figure, "errors": errors}


def row_of_ours(ours, peer=50.0, rounds=9, **more):
    """Returns Weir's row when `weir bench` reaches 100."""
    each = {clients.GENERATOR: result(100.0), clients.OURS: result(ours, **more),
            "client-go": result(peer)}
    return clients.rows_of([each] * rounds, list(each))[1]


class ClientsTest(unittest.TestCase):
    def verdicts(self, *arguments, **more):
        return [target["verdict"] for target in row_of_ours(*arguments, **more)["targets"]]

    def test_the_generator_and_the_nearest_peer_have_targets(self):
        self.assertEqual(self.verdicts(85.0), ["met (≥ 0.85)", "met (≥ 1)"])
        self.assertEqual(self.verdicts(84.0), ["MISSED (≥ 0.85)", "met (≥ 1)"])
        self.assertEqual(self.verdicts(90.0, 91.0), ["met (≥ 0.85)", "MISSED (≥ 1)"])

    def test_nine_saturated_rounds_are_needed(self):
        self.assertEqual(self.verdicts(90.0, rounds=8), ["not judged: saturated in 8 rounds"] * 2)
        self.assertEqual(self.verdicts(90.0, busy=0.5), ["not judged: saturated in 0 rounds"] * 2)

    def test_an_error_misses_the_targets(self):
        self.assertEqual(self.verdicts(90.0, errors=1), ["missed: errors"] * 2)

    def test_a_client_without_figure_is_in_the_table(self):
        failed = {"figure": 0, "errors": 1, "reason": "no"}
        each = {clients.GENERATOR: result(100.0), clients.OURS: failed}
        table = clients.table(clients.rows_of([each], list(each)))
        self.assertIn("| weir | no figure | | | | | 1 |", table)

    def test_numbers_of_the_generator_are_those_of_its_own_processor_time(self):
        said = {"responses": 100, "error_count": 1, "starved": 2,
                "server": {"responses_per_cpu_second": 50.0}}
        self.assertEqual(clients.numbers_of(clients.GENERATOR, said), (100, 2.0, 3))


if __name__ == "__main__":
    unittest.main()
