"""A copy of the repository that holds mutants, with its build."""

import dataclasses
import hashlib
import json
import os
import pathlib
import re
import subprocess
import threading

import deadline
import operators
import schema

TEST_MAIN = """// main() of test binaries; it records which mutants a test reaches.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "weir_mutate.hpp"

namespace {

class Recorder : public testing::EmptyTestEventListener {
 public:
  explicit Recorder(const char* name) : file_(std::fopen(name, "w")) {}
  ~Recorder() override {
    if (file_ != nullptr) std::fclose(file_);
  }

 private:
  void OnTestStart(const testing::TestInfo&) override {
    if (weir_mutate::reached == nullptr) return;
    std::memset(weir_mutate::reached, 0, weir_mutate::reached_size);
  }
  void OnTestEnd(const testing::TestInfo& info) override {
    if (file_ == nullptr || weir_mutate::reached == nullptr) return;
    const testing::TestResult& result = *info.result();
    const char* const how = result.Failed() ? "failed" : result.Skipped() ? "skipped" : "passed";
    std::fprintf(file_, "%s.%s %s %lld", info.test_suite_name(), info.name(), how,
                 static_cast<long long>(result.elapsed_time()));
    for (std::size_t number = 0; number < weir_mutate::reached_size; ++number) {
      if (weir_mutate::reached[number] != 0) std::fprintf(file_, " %zu", number);
    }
    std::fputs("\\n", file_);
    std::fflush(file_);
  }

  std::FILE* file_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (const char* const name = std::getenv("WEIR_MUTANTS_RECORD")) {
    testing::UnitTest::GetInstance()->listeners().Append(new Recorder(name));
    // A test that runs this program again would record into the same file.
    unsetenv("WEIR_MUTANTS_RECORD");
  }
  return RUN_ALL_TESTS();
}
"""

# The place of an error, or of a note, which explains the preceding error.
PLACE = re.compile(r"^([^\s:]+):(\d+):(\d+): (note|error|fatal error):", re.MULTILINE)


class BuildFailed(Exception):
    """A build failed for a reason other than a mutant."""


class Tree:
    """Copies the files of `root` to `folder`, and builds them there."""

    def __init__(self, root, folder, jobs, preset="asan"):
        self.root = pathlib.Path(root)
        self.folder = pathlib.Path(folder).resolve()
        self.build = self.folder / "build" / preset
        self._list = self.folder.parent / f"{self.folder.name}.mutants.json"
        self._preset = preset
        self._jobs = jobs

    def files(self):
        """Returns the paths of the repository's files that git does not ignore."""
        listed = subprocess.run(
            ["git", "-C", str(self.root), "ls-files", "-z", "--cached", "--others",
             "--exclude-standard"], check=True, capture_output=True).stdout.decode()
        return sorted(path for path in listed.split("\0") if (self.root / path).is_file())

    def held(self):
        """Returns {mutant: number} for the mutants of the tree whose files have not changed since
        write(). A mutant that did not compile has None instead of a number."""
        if not self._list.exists():
            return {}
        known = json.loads(self._list.read_text())
        files = known.get("files", {})
        same = {path for path, digest in files.items() if digest == self._digest(path)}
        held = {operators.Mutant(**each): number for number, each in known["mutants"]}
        return {each: number for each, number in held.items() if each.path in same}

    def _digest(self, path):
        path = self.root / path
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None

    def write(self, numbers):
        """Writes all files; those with mutants hold them. `numbers` is {mutant: number}; mutants
        without a number are left out."""
        of_path = {}
        for mutant, number in numbers.items():
            if number is not None:
                of_path.setdefault(mutant.path, {})[mutant] = number
        wanted = set()
        for path in self.files():
            content = (self.root / path).read_bytes()
            if path in of_path:
                content = schema.render(content, of_path[path])
            wanted.add(path)
            self._put(path, content, (self.root / path).stat().st_mode)
        self._put(schema.SELECTION_HEADER, schema.SELECTION.encode())
        self._put("weir_mutate_main.cpp", TEST_MAIN.encode())
        wanted |= {schema.SELECTION_HEADER, "weir_mutate_main.cpp"}
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder).as_posix()
            if path.is_file() and not name.startswith("build/") and name not in wanted:
                path.unlink()
        mutants = [(number, dataclasses.asdict(each)) for each, number in numbers.items()]
        files = {path: self._digest(path) for path in sorted({each.path for each in numbers})}
        self._list.write_text(json.dumps({"files": files, "mutants": mutants}))

    def _put(self, path, content, mode=0o644):
        target = self.folder / path
        if target.exists() and target.read_bytes() == content:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(mode & 0o777)

    def configure(self):
        if (self.build / "build.ninja").exists():
            return
        # The flags of ./dev test: the compiler cache then has all files without mutants.
        subprocess.run(
            ["cmake", "--preset", self._preset, "-S", str(self.folder), "-B", str(self.build),
             f"-DWEIR_TEST_MAIN={self.folder}/weir_mutate_main.cpp",
             "-DWEIR_BATCH=0"],  # each source that has faults defines the same helpers
            check=True, stdout=subprocess.DEVNULL, cwd=self.folder)

    def compile(self, targets, progress):
        """Builds the targets. Returns the errors, each a tuple of places (path, line, column) in
        files of the tree: its own and those of its notes. Raises OutOfTime if the build has not
        finished at the end of the run."""
        left = deadline.OF_RUN.left()
        command = ["ninja", "-C", str(self.build), "-k", "0", "-j", str(self._jobs), *targets]
        environment = os.environ | {"NINJA_STATUS": "[%f/%t] "}
        if "CCACHE_BASEDIR" in environment and self.folder.is_relative_to(self.root):
            if pathlib.Path(environment["CCACHE_BASEDIR"]).resolve() == self.root.resolve():
                environment["CCACHE_BASEDIR"] = str(self.folder)
        output = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=environment) as ninja:
            timer = threading.Timer(left, ninja.terminate)
            timer.start()
            try:
                for line in ninja.stdout:
                    output.append(line)
                    if line.startswith("["):
                        progress(line.split("]")[0] + "] building")
            finally:
                timer.cancel()
        deadline.OF_RUN.left()
        if ninja.returncode == 0:
            return set()
        text = "".join(output)
        errors = []
        for name, line, column, severity in PLACE.findall(text):
            if severity != "note":
                errors.append([])
            path = (self.build / name).resolve()  # ccache makes names relative
            if path.is_relative_to(self.folder):
                place = path.relative_to(self.folder).as_posix(), int(line), int(column)
                for places in errors[-1:]:  # none for the note of a warning
                    places.append(place)
        found = {tuple(places) for places in errors if places}
        if not found:
            raise BuildFailed(text[-3000:])
        return found
