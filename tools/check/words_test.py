"""Proves that each rule about words can fail."""

import subprocess
import unittest

import words
from check_fixture import CheckTestCase, HEADER

DOCUMENTED = "// The unit tcp.\n#pragma once\n\nnamespace weir {{\n\n/// {0}\nint tcp();\n\n}}" \
             "  // namespace weir\n"
GLOSSARY = "| term | meaning |\n|---|---|\n| `Known` | A type. |\n"


class WordsTest(CheckTestCase):
    def expect_comment(self, comment, message):
        path = "weir/net/tcp.hpp"
        self.expect("words", path, {path: DOCUMENTED.format(comment)}, message)

    def test_long_sentences_in_public_headers(self):
        long = "Returns " + "a word and " * 10 + "a word."
        path = "weir/net/tcp.hpp"
        self.expect_comment(long, "words in a sentence")
        self.expect_comment("Returns a word.\n/// " + long, "words in a sentence")
        (self.root / path).write_text(HEADER.format("tcp"))
        internal = DOCUMENTED.format(long.replace("and a word and a word", "and\n/// a word", 5))
        self.expect_clean({"weir/net/detail/wait.hpp": internal, path: HEADER.format("tcp")})

    def test_the_sections_of_a_contract_have_an_order(self):
        path = "weir/net/tcp.hpp"
        for sections in (("Threads", "Errors"), ("Errors", "Returns"), ("Cancel", "Cancel"),
                         ("Returns", "Lifetime", "Cancel")):
            comment = "Waits." + "".join(f"\n/// {section}: any." for section in sections)
            self.expect("contract", path, {path: DOCUMENTED.format(comment)}, sections[-1])
        for sections in (("Returns", "Errors", "Cancel", "Threads", "Lifetime"),
                         ("Errors", "Threads"), ("Cancel",), ("Threads", "See")):
            comment = "Waits." + "".join(f"\n/// {section}: any." for section in sections)
            self.expect_clean({path: DOCUMENTED.format(comment)})

    def test_sentences(self):
        lines = ["Waits for a value. It is taken then.", "Returns: the value;", "nothing else.",
                 "- one item", "    code()", "", "Last."]
        self.assertEqual(list(words.sentences(lines)),
                         ["Waits for a value.", "It is taken then.", "the value; nothing else.",
                          "one item", "Last."])

    def test_old_names(self):
        self.expect("names", "weir/net/tcp.hpp",
                    {"weir/net/tcp.hpp": DOCUMENTED.format("Returns a SideDoor.")},
                    "ExtraListener")
        self.expect("names", "docs/x.md", {"docs/x.md": "`Homed` values.\n"}, "ForeignPtr")

    def test_public_types_are_in_the_glossary(self):
        header = "// T.\n#pragma once\n\nnamespace weir {{\n\n{} {{}};\n\n}}  // namespace weir\n"
        path = "weir/net/type.hpp"
        for unknown in ("struct Unknown", "class Unknown final : public Known",
                        "enum class Unknown", "template <class T>\nclass Unknown"):
            self.expect("glossary", path, {path: header.format(unknown),
                                           "docs/glossary.md": GLOSSARY}, "Unknown")
        self.expect_clean({path: header.format("struct Known"), "docs/glossary.md": GLOSSARY})
        self.expect_clean({path: HEADER.format("tcp"), "docs/glossary.md": GLOSSARY,
                           "weir/net/detail/type.hpp": header.format("struct Unknown")})

    def test_commit_subjects(self):
        self.check({"STYLE.md": "# Style\n"})
        git = ["git", "-C", str(self.root), "-c", "user.name=T", "-c", "user.email=t@t.example"]
        subprocess.run([*git, "init", "-q"], check=True)
        for subject in ("net: close it", "net: " + "close " * 12, "net: close this; open that"):
            subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", subject], check=True)
        subjects = words.commit_subjects(self.root, "HEAD~2")
        self.assertEqual([subject for _, subject in subjects if words.subject_fault(subject)],
                         [subject for _, subject in subjects])
        self.assertEqual(len(subjects), 2)
        self.assertIsNone(words.subject_fault("net: close the listener"))


if __name__ == "__main__":
    unittest.main()
