"""One row for each situation: pattern, what the detector should say, why, the instruction, the steps."""

from typing import NamedTuple

from arise.types import StopReason

PASS, NONE = "pass", "none"
CONVERT = "Convert in.csv as described in spec.txt and write out.csv."
PLAIN = "Tidy up here."
ALL = "Convert all csv files."
CUT = StopReason.TURN_LIMIT
LS = "ls => check\nin.csv\nspec.txt"
STRICT = "Write out.csv. It must have 3 columns. Use exactly `utf-8`. Never quote fields."


class Case(NamedTuple):
    """`expected` is `pass`, `none` (not applicable) or the name of the miss."""

    pattern: str
    expected: str
    why: str
    instruction: str
    steps: tuple[str, ...]
    stop: StopReason = StopReason.FINISHED
    skills: tuple[str, ...] = ()


def case(
    pattern: str, expected: str, why: str, instruction: str, *steps: str, stop: StopReason = StopReason.FINISHED
) -> Case:
    return Case(pattern, expected, why, instruction, steps, stop)


CASES = [
    case("P01", PASS, "every literal shows", STRICT, "sel --cols 3 --enc utf-8 in > out.csv", "submit"),
    case("P01", PASS, "restated in words", STRICT, "say: 3 columns, utf-8, no quotes", "sel in.csv > out.csv", "submit"),
    case("P01", "dropped", "encoding never returns", STRICT, "sel --cols 3 in.csv > out.csv", "submit"),
    case("P01", NONE, "one constraint only", "Write out.csv. It must have 3 columns.", "sel in.csv > out.csv", "submit"),
    case("P01", NONE, "nothing was done yet", STRICT, "ls => in.csv", "cat in.csv => a"),
    case("P02", PASS, "read back", CONVERT, "conv in.csv > out.csv", "cat out.csv => a", "submit"),
    case("P02", PASS, "validated by a check", CONVERT, "conv in.csv > out.csv", "./check out.csv => ok", "submit"),
    case("P02", PASS, "in the same command", CONVERT, "conv in.csv > out.csv && head out.csv => a", "submit"),
    case("P02", PASS, "absolute path is the same file", CONVERT, "conv in.csv > out.csv", "cat /app/out.csv => a", "submit"),
    case("P02", "never", "finished at once", CONVERT, "conv in.csv > out.csv", "submit"),
    case("P02", "never", "looked at another file", CONVERT, "conv in.csv > out.csv", "cat in.csv => a", "submit"),
    case("P02", "stale", "written again", CONVERT, "conv in.csv > out.csv", "cat out.csv", "conv -x in.csv > out.csv", "submit"),
    case("P02", "unfixed", "failed check left", CONVERT, "conv in.csv > out.csv", "./check out.csv => !bad", "submit"),
    case("P02", "never", "second output of the kind", ALL + " Follow spec.txt.", "conv a.csv > a.out", "cat a.out => x", "conv b.csv > b.out", "submit"),
    case("P02", PASS, "a report of another kind came later", "Write out.csv. Also write report.txt.",
         "conv in.csv > out.csv", "cat out.csv => x", "sum out.csv > report.txt", "submit"),
    case("P02", NONE, "nothing written", CONVERT, "ls => in.csv", "submit"),
    case("P02", NONE, "cut off by the turn limit", CONVERT, "conv in.csv > out.csv", stop=CUT),
    case("P02", NONE, "the write failed", CONVERT, "conv in.csv > out.csv => !error: no", "submit"),
    case("P03", PASS, "looked into a warning", CONVERT, "conv in.csv > out.csv => warning: skipped 2 rows", "cat in.csv => a", "submit"),
    case("P03", PASS, "other options", CONVERT, "conv in.csv > out.csv => 0 rows written", "conv -s in.csv > out.csv => 5 rows", "submit"),
    case("P03", PASS, "limit reported", CONVERT, "conv in.csv > out.csv => skipped 2", "say: 2 rows were skipped", "submit"),
    case("P03", "passed_over", "finished on a warning", CONVERT, "conv in.csv > out.csv => warning: skipped 2 rows", "submit"),
    case("P03", "passed_over", "wrote on an empty read", CONVERT, "cat in.csv => ", "echo x > out.csv", "submit"),
    case("P03", NONE, "nothing was thin", CONVERT, "conv in.csv > out.csv => wrote 5 rows, 0 skipped", "submit"),
    case("P03", NONE, "a document may say warning", CONVERT, "cat spec.txt => skipped rows give a warning", "submit"),
    case("P04", PASS, "argument changed", CONVERT, "conv --u x in.csv => !unknown option --u", "conv --unit m in.csv => ok", "submit"),
    case("P04", PASS, "call left alone", CONVERT, "conv --u x in.csv => !usage: conv FILE", "submit"),
    case("P04", PASS, "input changed in between", CONVERT, "conv in.csv => !invalid header", "sed -i s/a/b/ in.csv", "conv in.csv => ok", "submit"),
    case("P04", "repeated", "same call again", CONVERT, "conv in.csv => !expected comma", "conv in.csv => !expected comma", "submit"),
    case("P04", "repeated", "only blanks differ", CONVERT, "conv in.csv => !invalid value", "conv   in.csv => !invalid value", "submit"),
    case("P04", "repeated", "after a mere look", CONVERT, "conv in.csv => !invalid value", "ls => in.csv", "conv in.csv", "submit"),
    case("P04", NONE, "missing file is no rejection", CONVERT, "conv x.csv => !x.csv: No such file or directory", "submit"),
    case("P04", NONE, "a failing check speaks of the work", CONVERT, "./check out.csv => !expected 3 columns", "submit"),
    case("P04", NONE, "no error", CONVERT, "conv in.csv => expected 5 rows, got 5", "submit"),
    case("P05", PASS, "each file once", CONVERT, LS, "cat spec.txt => m", "cat in.csv => a", "submit"),
    case("P05", PASS, "looked again after a write", CONVERT, "ls => in.csv", "conv in.csv > out.csv", "ls => in.csv", "submit"),
    case("P05", PASS, "the answer was new", CONVERT, "tail log => a", "tail log => a b", "submit"),
    case("P05", "repeated", "same listing twice", CONVERT, LS, LS, "submit"),
    case("P05", "repeated", "same file after other reads", CONVERT, "cat a.txt => x", "cat b.txt => y", "cat a.txt => x", "submit"),
    case("P05", NONE, "nothing read", CONVERT, "conv in.csv > out.csv", "submit"),
    case("P06", PASS, "previewed", CONVERT, "head -n 3 in.csv => a", "conv in.csv > out.csv", "submit"),
    case("P06", PASS, "a sibling was previewed", ALL, "ls => a.csv b.csv", "head a.csv => x", "conv b.csv > b.out", "submit"),
    case("P06", PASS, "searched", CONVERT, "grep -c , in.csv => 3", "conv in.csv > out.csv", "submit"),
    case("P06", "unseen", "processed blind", CONVERT, "cat spec.txt => m", "conv in.csv > out.csv", "submit"),
    case("P06", "unseen", "a failed attempt counts", CONVERT, "conv in.csv > out.csv => !error", "cat in.csv => a", "submit"),
    case("P06", "unseen", "a copy is no look", CONVERT, "cp in.csv in.csv.bak", "conv in.csv > out.csv", "submit"),
    case("P06", "unseen", "piped into a program", CONVERT, "cat in.csv | conv > out.csv", "submit"),
    case("P06", NONE, "only read", CONVERT, "cat in.csv => a", "submit"),
    case("P06", NONE, "own intermediate file", PLAIN, "gen > x.csv", "conv x.csv > y.csv", "submit"),
    case("P07", PASS, "all named ones", "Merge a.csv and b.csv.", "join2 a.csv b.csv > m.csv", "submit"),
    case("P07", PASS, "by a loop", ALL, "ls => a.csv b.csv", "for f in *.csv; do conv $f > $f.out; done", "submit"),
    case("P07", PASS, "exclusion named", "Merge a.csv and b.csv.", "use a.csv", "say: I skip b.csv because it is empty", "submit"),
    case("P07", "partial", "one named left", "Merge a.csv and b.csv.", "conv a.csv > m.csv", "submit"),
    case("P07", "partial", "one listed left", ALL, "ls => a.csv b.csv", "conv a.csv > a.out", "submit"),
    case("P07", "partial", "the second call failed", ALL, "ls => a.csv b.csv", "conv a.csv", "conv b.csv => !error: no", "submit"),
    case("P07", "unlisted", "never enumerated", ALL, "conv a.csv > a.out", "submit"),
    case("P07", NONE, "a single input", CONVERT, "conv in.csv > out.csv", "submit"),
    case("P08", PASS, "opened first", CONVERT, "cat spec.txt => m", "conv in.csv > out.csv", "submit"),
    case("P08", PASS, "found in a listing", PLAIN, "ls => README.md x.csv", "cat README.md => y", "conv x.csv > y.csv", "submit"),
    case("P08", "ignored", "named and never opened", CONVERT, "conv in.csv > out.csv", "submit"),
    case("P08", "ignored", "opening failed", CONVERT, "cat spec.txt => !cat: spec.txt: No such file or directory", "submit"),
    case("P08", "late", "opened after the write", CONVERT, "conv in.csv > out.csv", "cat spec.txt => m", "submit"),
    case("P08", NONE, "no guidance visible", PLAIN, "ls => x.csv", "conv x.csv > y.csv", "submit"),
    case("P08", NONE, "listed only after the write", PLAIN, "conv x.csv > y.csv", "ls => README.md", "submit"),
    case("P09", PASS, "ran, edited, ran", "The script app.py crashes.", "python app.py => !Traceback", "sed -i s/a/b/ app.py", "python app.py => ok", "submit"),
    case("P09", "unreproduced", "edited first", "The script app.py crashes.", "sed -i s/a/b/ app.py", "python app.py => ok", "submit"),
    case("P09", "not_rerun", "not run again", "The script app.py crashes.", "python app.py => !Traceback", "sed -i s/a/b/ app.py", "submit"),
    case("P09", NONE, "nothing broken", CONVERT, "sed -i s/a/b/ app.py", "submit"),
    case("P09", NONE, "no edit", "The script app.py crashes.", "python app.py => !Traceback", "submit"),
    case("P10", PASS, "fixed the work", CONVERT, "./check out.csv => !bad", "conv in.csv > out.csv", "submit"),
    case("P10", "weakened", "edited the check", CONVERT, "./check out.csv => !bad", "sed -i s/bad/ok/ check", "submit"),
    case("P10", "weakened", "removed the tests", CONVERT, "pytest => !1 failed", "rm tests/test_a.py", "submit"),
    case("P10", "skipped", "silenced", CONVERT, "./check out.csv => !bad", "./check out.csv || true => bad", "submit"),
    case("P10", NONE, "nothing failed", CONVERT, "./check out.csv => ok", "conv in.csv > out.csv", "submit"),
    case("P10", NONE, "nothing followed", CONVERT, "./check out.csv => !bad", "submit"),
    case("P11", PASS, "new options after two", CONVERT, "conv a.csv => !error", "conv -x a.csv => !error", "conv -y a.csv => ok", "submit"),
    case("P11", PASS, "gave up", CONVERT, "conv a.csv => !error", "conv a.csv => !error", "submit"),
    case("P11", "third", "third time", CONVERT, "conv a.csv => !error", "conv a.csv => !error", "conv a.csv => !error", "submit"),
    case("P11", NONE, "failed once", CONVERT, "conv a.csv => !error", "conv a.csv => ok", "submit"),
    case("P11", NONE, "different files", CONVERT, "conv a.csv => !error", "conv b.csv => !error", "submit"),
    case("P12", PASS, "ran last", CONVERT, LS, "conv in.csv > out.csv", "./check out.csv => ok", "submit"),
    case("P12", PASS, "named in the instruction", "Write out.csv. Use `./check`.", "conv in.csv > out.csv", "./check => ok", "submit"),
    case("P12", PASS, "failed, cured, ran again", CONVERT, LS, "conv in.csv > out.csv", "./check out.csv => !bad",
         "conv -x in.csv > out.csv", "./check out.csv => ok", "submit"),
    case("P12", PASS, "a program said what it wrote", CONVERT, LS, "./tool cm in.csv res.csv => wrote res.csv", "./check res.csv", "submit"),
    case("P12", "never", "not run", CONVERT, LS, "conv in.csv > out.csv", "submit"),
    case("P12", "never", "diff is not the check", CONVERT, LS, "conv in.csv > out.csv", "diff in.csv out.csv", "submit"),
    case("P12", "stale", "written after the run", CONVERT, LS, "conv in.csv > out.csv", "./check out.csv => ok", "conv -x in.csv > out.csv", "submit"),
    case("P12", "unfixed", "failure left", CONVERT, LS, "conv in.csv > out.csv", "./check out.csv => !bad", "submit"),
    case("P12", NONE, "no check visible, though one was run", CONVERT, "conv in.csv > out.csv", "./check out.csv => ok", "submit"),
    case("P12", NONE, "nothing written", CONVERT, LS, "submit"),
    case("P13", PASS, "a second route", "Compute the total of in.csv.", "tot in.csv > out.csv", "awk '{s+=$1} END{print s}' in.csv => 6", "submit"),
    case("P13", "single", "one computation", "Compute the total of in.csv.", "cat in.csv => 1", "tot in.csv > out.csv", "submit"),
    case("P13", NONE, "no figure asked for", CONVERT, "conv in.csv > out.csv", "submit"),
    case("P13", NONE, "nothing computed", "Compute the total of in.csv.", "cat in.csv => 1", "submit"),
    case("P14", PASS, "by an option", "Convert in.csv to one unit.", "conv --unit cm in.csv > out.csv", "submit"),
    case("P14", PASS, "in words", "Bring in.csv to one time zone.", "say: I convert all times to UTC", "norm in.csv > out.csv", "submit"),
    case("P14", "silent", "nothing stated", "Convert in.csv to one unit.", "norm in.csv > out.csv", "submit"),
    case("P14", NONE, "no quantities", CONVERT, "conv in.csv > out.csv", "submit"),
    case("P14", NONE, "unit tests are no units", "Run the unit tests of in.csv.", "norm in.csv > out.csv", "submit"),
    case("P15", PASS, "claim is backed", CONVERT, "conv in.csv > out.csv", "./check out.csv => ok", "say: Done, I checked out.csv."),
    case("P15", PASS, "failure admitted", CONVERT, "./check out.csv => !bad", "say: Finished, but the check failed."),
    case("P15", "contradicted", "failed check called success", CONVERT, "./check out.csv => !bad", "say: All done successfully."),
    case("P15", "unbacked", "file never made", CONVERT, "ls => in.csv", "say: I have written result.csv."),
    case("P15", "unbacked", "check never made", CONVERT, "conv in.csv > out.csv", "say: Verified."),
    case("P15", NONE, "silent finish", CONVERT, "conv in.csv > out.csv", "submit"),
    case("P15", NONE, "cut off", CONVERT, "say: Done.", "conv in.csv > out.csv", stop=CUT),
    case("P16", PASS, "copy first", CONVERT, "cp in.csv in.csv.bak", "sed -i s/a/b/ in.csv", "submit"),
    case("P16", PASS, "sed keeps a copy", CONVERT, "sed -i.bak s/a/b/ in.csv", "submit"),
    case("P16", PASS, "committed before", CONVERT, "git commit -am x", "rm in.csv", "submit"),
    case("P16", "unsafe", "in place", CONVERT, "sed -i s/a/b/ in.csv", "submit"),
    case("P16", "unsafe", "listed file removed", PLAIN, "ls => old.csv", "rm old.csv", "submit"),
    case("P16", "unsafe", "a program says it overwrote", CONVERT, "./tool x in.csv in.csv => wrote in.csv", "submit"),
    case("P16", "late", "copy came later", CONVERT, "sed -i s/a/b/ in.csv", "cp in.csv in.csv.bak", "submit"),
    case("P16", NONE, "a new file", CONVERT, "conv in.csv > out.csv", "submit"),
    case("P16", NONE, "a requested output that was there", CONVERT, "ls => in.csv out.csv", "conv in.csv > out.csv", "submit"),
    case("P16", NONE, "own file", CONVERT, "conv in.csv > tmp.csv", "conv -x in.csv > tmp.csv", "rm tmp.csv", "submit"),
    case("P16", NONE, "a source it was asked to edit", "Fix the script app.py.", "cat app.py => x", "sed -i s/a/b/ app.py", "submit"),
    case("P17", PASS, "installed", CONVERT, "csvkit in.csv => !csvkit: command not found", "pip install csvkit", "submit"),
    case("P17", PASS, "substitute", CONVERT, "jqx in.csv => !jqx: command not found", "awk 1 in.csv > out.csv", "submit"),
    case("P17", PASS, "reported", CONVERT, "jqx in.csv => !jqx: command not found", "say: jqx is not installed, I stop."),
    case("P17", "blind", "called again", CONVERT, "jqx in.csv => !jqx: command not found", "jqx in.csv => !jqx: command not found", "submit"),
    case("P17", "dropped", "left in silence", CONVERT, "jqx in.csv => !jqx: command not found", "submit"),
    case("P17", NONE, "nothing missing", CONVERT, "conv in.csv > out.csv", "submit"),
    case("P18", PASS, "both read", "Follow spec.txt and notes.txt.", "cat spec.txt => a", "cat notes.txt => b", "conv x > out.csv", "submit"),
    case("P18", "one_sided", "only one read", "Follow spec.txt.", "ls => spec.txt notes.txt", "cat spec.txt => a", "conv x > out.csv", "submit"),
    case("P18", NONE, "one source", CONVERT, "cat spec.txt => a", "conv in.csv > out.csv", "submit"),
    case("P18", NONE, "nothing written", "Follow spec.txt and notes.txt.", "cat spec.txt => a", "submit"),
    case("P19", PASS, "one call", ALL, "ls => a.csv b.csv c.csv", "conv a.csv b.csv c.csv", "submit"),
    case("P19", PASS, "a loop", ALL, "ls => a.csv b.csv c.csv", "for f in a.csv b.csv c.csv; do conv $f; done", "submit"),
    case("P19", "one_by_one", "by hand", ALL, "ls => a.csv b.csv c.csv", "conv a.csv", "conv b.csv", "conv c.csv", "submit"),
    case("P19", NONE, "few", ALL, "ls => a.csv b.csv", "conv a.csv", "conv b.csv", "submit"),
    case("P20", PASS, "both made", "Write a.csv. Write b.csv.", "gen > a.csv", "gen -b > b.csv", "submit"),
    case("P20", PASS, "listed at the end", "Write a.csv. Write b.csv.", "gen > a.csv", "ls => a.csv b.csv", "submit"),
    case("P20", "never", "one missing", "Write a.csv. Write b.csv.", "gen > a.csv", "submit"),
    case("P20", "unfilled", "the list lacks one", "Write a.csv. Write b.csv.", "gen > a.csv", "ls => a.csv", "submit"),
    case("P20", NONE, "one output", CONVERT, "conv in.csv > out.csv", "submit"),
    case("P20", NONE, "nothing written", "Write a.csv. Write b.csv.", "ls => x", "submit"),
]  # fmt: skip
