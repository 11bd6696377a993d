"""Checks words as far as a program can judge them: the length of sentences in public headers, the
order of a contract's sections, names that have been replaced, public types without a line in the
glossary, and commit subjects.

    words.py [--root FOLDER] [FILE...]

Prints the faults of the files given (all files if none is).
"""

import argparse
import pathlib
import re
import subprocess
import sys

import classes
import cxx_text
import floors

SENTENCE_WORDS_MAX = 30
SUBJECT_MAX = 72
FIRST_PLAIN_COMMIT = "fa0be76bc7f5aa466853ecb47696308d996d8399"  # the last one before the rules
OWN_FILES = {"tools/check/words.py", "tools/check/words_test.py", "docs/glossary.md"}
# Written by tools or by others.
QUOTED = re.compile(
    r"^(docs/bench/|docs/headers\.md|tests/data/|fuzz/corpus/|LICENSE$|bench/gate/)")

CONTRACT = ["Returns", "Errors", "Cancel", "Threads", "Lifetime"]  # sections, in this order
SECTION = re.compile(r"^(Returns|Errors|Cancel|Threads|Lifetime|Units|See|RFC|Example)\s*:")
CODE = re.compile(r"`[^`]*`|\"[^\"\n]*\"|\bhttps?://\S+|\b[\w:]+(?:<[^<>]*>)?\(\)|"
                  r"\b\w+(?:(?:::|->)\w+)+")


def comment_blocks(text):
    """(line, is_doc, lines) of each block of // comments, trailing ones included."""
    blocks, number = [], 0
    plain = cxx_text.without_comments(text).splitlines()
    previous_alone = False
    for number, line in enumerate(text.splitlines(), 1):
        code = plain[number - 1] if number <= len(plain) else ""
        if code.rstrip() == line.rstrip() or "//" not in line[len(code.rstrip()):]:
            previous_alone = False
            continue
        comment = line[len(code.rstrip()):].strip()
        doc = comment.startswith("///")
        words = re.sub(r"^/{2,3}<?\s?", "", comment)
        alone = not code.strip()
        if alone and previous_alone and blocks and blocks[-1][1] == doc:
            blocks[-1][2].append(words)
        elif not alone or not re.match(r"^(NOLINT|clang-format|namespace\b)", words):
            if not (not alone and re.match(r"^namespace\b|^NOLINT", words)):
                blocks.append([number, doc, [words]])
        previous_alone = alone
    return blocks


def sentences(lines):
    """The sentences of a comment; a section, a list item and a blank line begin a new one. Lines
    that are indented by four or more are code."""
    paragraphs, current = [], []
    for line in lines:
        fresh = not line.strip() or SECTION.match(line.strip()) or re.match(r"^\s*([-*|]|\d+\.)\s",
                                                                           line)
        if fresh and current:
            paragraphs.append(" ".join(current))
            current = []
        if line.startswith("    ") or line.startswith("|"):
            continue
        if line.strip():
            current.append(re.sub(r"^([-*]|\d+\.)\s+", "", line.strip()))
    if current:
        paragraphs.append(" ".join(current))
    for paragraph in paragraphs:
        paragraph = SECTION.sub("", paragraph).strip()
        for sentence in re.split(r"(?<=[.!?])\)?\s+(?=[A-Z`(\"])", paragraph):
            if re.search(r"[A-Za-z]", sentence):
                yield sentence.strip()


def word_count(sentence):
    return len(re.findall(r"[\w'’-]*\w[\w'’-]*", CODE.sub(" code ", sentence)))


def check_sentences(repository, report):
    for file in filter(floors.is_public, repository.cxx):
        for line, _, lines in comment_blocks(file.text):
            for sentence in sentences(lines):
                if word_count(sentence) > SENTENCE_WORDS_MAX:
                    report(file, line, "words", f"{word_count(sentence)} words in a sentence; "
                           f"at most {SENTENCE_WORDS_MAX}: {sentence[:60]}")


def check_contracts(repository, report):
    """The sections of a contract have a fixed order, and each occurs once."""
    for file in repository.cxx:
        if not file.is_header or floors.floor_of(file.path) is None:
            continue
        for line, doc, lines in comment_blocks(file.text):
            found = [section[1] for each in lines if (section := SECTION.match(each))]
            found = [section for section in found if section in CONTRACT]
            if doc and found != [section for section in CONTRACT if section in found]:
                report(file, line, "contract", f"sections {', '.join(found)}; the order is "
                                               f"{', '.join(CONTRACT)}, each at most once")


def check_names(repository, report):
    """No name of the old glossary is left."""
    if not OLD_NAMES:
        return
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, OLD_NAMES))})\b")
    for file in repository.files.values():
        if file.path in OWN_FILES or QUOTED.match(file.path) or file.path == "CHANGELOG.md":
            continue
        for number, line in enumerate(file.lines, 1):
            for found in pattern.finditer(line):
                report(file, number, "names", f"{found[0]} is now {OLD_NAMES[found[0]]}")


def public_types(repository):
    """(name, file, line) of the types that public headers define for users."""
    for file in repository.cxx:
        if not floors.is_public(file):
            continue
        for offset, scopes, name in namespace_types(file.code):
            if not {"detail"}.intersection(scopes):
                yield name, file, cxx_text.line_of(file.code, offset)


TYPE = re.compile(r"(?:^|[;{}]|\btemplate)\s*((?:enum\s+class|enum|class|struct|concept)\s+"
                  r"(?:\[\[[^\]]*\]\]\s*)?(?:alignas\s*\([^()]*\)\s*)?([A-Z]\w*))\s*"
                  r"(?:final\s*)?(?::[^;{]*)?(?=[{=])")


def namespace_types(code):
    """(offset, namespaces, name) of each type that is defined at namespace level."""
    try:
        partner = cxx_text.brackets(code)
    except cxx_text.UnbalancedBraces:
        return
    offset, start, spaces = 0, 0, []
    while offset < len(code):
        if spaces and offset == spaces[-1][0]:
            spaces.pop()
            start = offset + 1
        elif code[offset] == "{" and (
                space := re.search(r"\bnamespace\s+([\w:]*)\s*$", code[start:offset])):
            spaces.append((partner[offset], space[1].split("::")))
            start = offset + 1
        elif code[offset] == "{" or code[offset] == ";":
            head = code[start:offset] + code[offset]
            if found := TYPE.search(classes.without_template_arguments(head)):
                names = [name for _, parts in spaces for name in parts]
                yield offset, names, found[2]
            if code[offset] == "{":
                offset = partner[offset]
            start = offset + 1
        elif code[offset] in "([":
            offset = partner[offset]
        offset += 1


def check_glossary(repository, report):
    glossary = repository.files.get("docs/glossary.md")
    if glossary is None:
        return
    defined = {name for row in re.findall(r"^\|([^|]*)\|", glossary.text, re.MULTILINE)
               for name in re.findall(r"\w+", row)}
    for name, file, line in public_types(repository):
        if name not in defined:
            report(file, line, "glossary", f"{name} has no line in docs/glossary.md")


def commit_subjects(root, base):
    """[(commit, subject)] of the commits after `base`; none where git does not know it."""
    ran = subprocess.run(["git", "-C", str(root), "log", "--no-merges", "--format=%h %s",
                          f"{base}..HEAD"], capture_output=True, text=True)
    lines = ran.stdout.splitlines() if ran.returncode == 0 else []
    return [tuple(line.split(" ", 1)) for line in lines]


def subject_fault(subject):
    """What is wrong with a commit subject, or None."""
    if len(subject) > SUBJECT_MAX:
        return f"{len(subject)} columns in a commit subject; at most {SUBJECT_MAX}"
    if "; " in subject:
        return "several changes in a commit subject"
    return None


def check_subjects(repository, report):
    """Commit subjects since the rules began."""
    own = repository.files.get("STYLE.md")
    if own is None or not (repository.root / ".git").exists():
        return
    for commit, subject in commit_subjects(repository.root, FIRST_PLAIN_COMMIT):
        if fault := subject_fault(subject):
            report(own, 1, "subjects", f"{commit}: {fault}")


# Names of the first version, and what they are called now.
OLD_NAMES = {
    "AddressPatience": "BindRetry", "AdmissionWatcher": "AcceptObserver",
    "BalanceRule": "BalancePolicy", "Bell": "Wakeup", "Blueprint": "RegistrationInput",
    "Captures": "PathParams", "case_book": "case_registry", "connections_came": "on_connections",
    "ContractBench": "ContractFixture", "CoreAutoResetEvent": "AutoResetEvent",
    "CoreChannel": "Channel", "CoreLatch": "Latch", "CoreManualResetEvent": "ManualResetEvent",
    "CoreMutex": "Mutex", "CoreSemaphore": "Semaphore", "CoreServices": "CoreAgent",
    "CoreSharedMutex": "SharedMutex", "DeferredWait": "LazyAwaiter",
    "distrust": "peer_rejection_reason", "DrainWatcher": "DrainObserver",
    "EventGuard": "BeforeInterceptor", "EventParcel": "SharedEvent", "EventPlace": "EventStorage",
    "EventReceiver": "Subscriber", "EventRoster": "SubscriberTable",
    "EventWitness": "AfterInterceptor", "fail_together": "cancel_siblings",
    "Farewell": "OnUnused", "FigureSource": "MetricSource", "FigureSum": "MetricSnapshot",
    "from_capture": "from_path_param", "go_on_with": "resume_coroutine",
    "HandoverConversation": "HandoverProtocol", "HandoverParty": "HandoverDelegate",
    "HandoverPlace": "HandoverEndpoint", "HandoverTalk": "HandoverConnection",
    "HangupWatcher": "HangupObserver", "Homecoming": "DestroyQueue", "Homed": "ForeignPtr",
    "HostClock": "SystemClock", "Intake": "HandoffQueue", "KnownHost": "HostLineCache",
    "LastAnswers": "LingeringStreams", "LiveService": "ReloadableService",
    "LoopPlace": "LoopPlacement", "MadeFor": "ScopedFactoryKey", "MailboxGate": "MailboxQueue",
    "make_homed": "make_foreign", "meet_at": "connect_or_listen",
    "MemoryChance": "Nondeterminism", "MemoryHost": "MemoryPlatform",
    "MemoryParcel": "MemorySegment", "MemoryPath": "LinkModel", "NameFiles": "SystemDnsConfig",
    "NameServers": "DnsClient", "neighbourhood": "private_networks",
    "OpenConnection": "Connection", "OsHost": "OsPlatform", "Outpost": "RemoteAgent",
    "OwnedRoutes": "ServiceRouteSet",
    "Chosen": "inject::Where", "put_up": "publish", "take_down": "unpublish",
    "PatternFault": "PatternError", "PoolCalls": "InFlightCalls", "PoolCrew": "PoolThreads",
    "PoolKeeper": "PoolController", "PoolWatch": "PoolSampler", "ProviderUse": "ProviderRef",
    "queued_max": "capacity", "RadixCensus": "RadixStats", "Recipe": "Registration",
    "Refusal": "ParseError", "RequestUnit": "RequestTrace", "RouteBoard": "ServiceRouteRegistry",
    "RouteBook": "RouteStore", "RouteChange": "RouteUpdate", "RoutePublisher": "RouteUpdater",
    "RouteReader": "RouteSnapshot", "RouteSeat": "CoreHandler", "RouteSeats": "CoreHandlers",
    "RouteTenancies": "OwnerInFlightPerCore", "RouteTenancy": "OwnerInFlight",
    "RouteUse": "InFlightRequest", "RouteUses": "InFlightRequests",
    "running_max": "concurrency_max", "same_text": "fast_equal", "ScopedMaker": "ScopedFactory",
    "ServerCore": "ServerState", "Shelf": "SlotArray", "side_door_changed": "on_change",
    "SideDoor": "ExtraListener", "SlotSet": "HierarchicalBitset", "SlowPlace": "StallSummary",
    "SlowTurns": "StallLog", "Spinning": "AdaptiveSpinner", "SpinPlace": "SpinPermit",
    "stand_back": "set_background_priority", "status_for": "to_status",
    "take_no_more": "stop_accepting", "Taker": "Subscriber", "ThreadRank": "ThreadPriority",
    "TimedStream": "Connection", "turn_away": "reject_connection", "TurningAway": "Rejection",
    "TurnPlace": "StallSite", "TurnWatch": "StallDetector", "unacknowledged": "unacked_bytes",
    "UnitsHold": "PermitGuard", "UsedProvider": "CountedProvider",
    "UsualHead": "ResponseHeadCache", "WaitOwner": "WaitObserver", "Wanderer": "RandomClient",
    "WhenFull": "OverflowPolicy", "WhenSlow": "SlowReaderPolicy", "WorkerOrder": "WorkerCommand",
    "WorkerSeat": "WorkerHandle", "WorkUnit": "TraceContext",
    "WorldChance": "SeededNondeterminism", "WorldDraw": "Random", "WorldHost": "Host",
    "WorldLine": "SimPipe", "WorldTalk": "SimHandoverConnection",
    "WorldVariation": "JitterOptions", "WorldWatch": "BlockingCallDetector",
    "serve_with": "serve", "serve_on": "listen_and_serve", "HttpServerOptions": "ServeOptions",
    "start_deadline": "start_timeout", "stop_deadline": "stop_timeout",
    "ready_within": "ready_timeout", "settling": "settle_timeout", "queue_max": "capacity",
    "make_twin": "clone_instance", "bury": "remove_stopped", "Batches": "BatchQueue",
    "share_used": "turn_budget_used", "first_life": "is_first_run",
    "came_home": "on_completed_at_owner", "send_home": "resume_on_owner",
    "let_go": "destroy_on_owner", "status_text": "problem_document", "is_usual": "is_common",
    "Patience": "RateTracker", "Transport": "ConnectionIo",
}

CHECKS = [check_sentences, check_contracts, check_names, check_glossary, check_subjects]


def main():
    from repository import Repository
    parser = argparse.ArgumentParser(description="Checks words.")
    parser.add_argument("--root", default=str(pathlib.Path(__file__).resolve().parents[2]))
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    repository = Repository(options.root)
    wanted = {str(pathlib.Path(each).resolve().relative_to(repository.root))
              for each in options.files}
    faults = set()
    for rule in CHECKS:
        rule(repository, lambda file, line, rule, message: faults.add(
            (file.path, line, rule, message)))
    faults = sorted(fault for fault in faults if not wanted or fault[0] in wanted)
    for path, line, rule, message in faults:
        print(f"{path}:{line}: {rule}: {message}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
