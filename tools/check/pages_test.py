"""Tests the checks of README.md and the guide."""

import unittest

from check_fixture import CheckTestCase

EXAMPLE = "// E.\nint f() {\n  int a = 1;\n  return a;\n}\n"
PAGE = "docs/guide/a.md"
NAMED = "See [e](../../examples/e.cpp).\n"


def block(code, language="cpp"):
    return f"```{language}\n{code}\n```\n"


class PagesTest(CheckTestCase):
    def page(self, text):
        return {"examples/e.cpp": EXAMPLE, "examples/other.cpp": "// O.\n", PAGE: text}

    def test_code_is_a_part_of_the_named_example(self):
        for part in ("int f() {\n  int a = 1;", "int a = 1;\nreturn a;", "  int a = 1;"):
            self.expect_clean(self.page(NAMED + block(part)))
        for other in ("int a = 2;", "int f() {\n  return a;", "int a", "int f() {\nint a = 1;"):
            self.expect("page-code", PAGE, self.page(NAMED + block(other)), "not a part of")
        self.expect_clean(self.page(NAMED + block("int a = 2;", "text")))

    def test_code_follows_the_name_of_its_example(self):
        self.expect("page-code", PAGE, self.page(block("int a = 1;")), "name the example")
        self.expect("page-code", PAGE,
                    self.page("examples/none.cpp\n" + block("int a = 1;")), "name the example")
        named = NAMED + "and `examples/other.cpp`\n"
        self.expect("page-code", PAGE, self.page(named + block("int a = 1;")), "other.cpp")

    def test_links_and_commands_lead_somewhere(self):
        self.expect_clean({"docs/other.md": "[x](b.md)\n"})
        self.expect_clean(self.page("`./dev run e`, [a](a.md), [b](https://example.org/x)\n"))
        self.expect("page-run", PAGE, self.page("`./dev run none`\n"), "no example none")
        self.expect("page-link", PAGE, self.page("[x](b.md#part)\n"), "no docs/guide/b.md")

    def test_the_readme_is_short(self):
        self.expect_clean({"README.md": "a\n" * 190})
        self.expect("page-size", "README.md", {"README.md": "a\n" * 191}, "191 lines")


if __name__ == "__main__":
    unittest.main()
