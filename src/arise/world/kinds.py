"""The task kinds of the world: for each task type, what its tool does and what makes it hard.

Every kind requires a transformation whose correct profile appears only in a guidance file, so success needs several
behaviours in sequence; the tool is a real script around awk, and its result depends on the profile.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Kind:
    """One task type: wordings of its instruction, the tool's four profiles (awk), and what makes it hard."""

    task_type: str
    domain: str
    wordings: tuple[str, ...]
    profiles: tuple[str, str, str, str]
    parts: int = 1
    formats: bool = False
    """The data's separator varies and the tool must be told which it is."""
    buffered: float = 0.0
    """How likely the tool leaves its last row in a buffer on the first run, without a word."""
    in_place: bool = False
    """The input itself is changed, and the original must survive somewhere."""
    report: bool = False
    """A second deliverable is due."""
    notes: bool = False
    """A second guidance file may overrule the first."""
    blanks: bool = False
    """Some values are missing in the data."""
    repeats: bool = False
    """Ids repeat in the data."""
    sources: bool = False
    """The data has a third column from another source."""


_GROUP = "{{v[$1]+=0; if(!($1 in n)){{o[++k]=$1}} n[$1]++; {update}}} END{{for(i=1;i<=k;i++) print o[i] FS {value}}}"

KINDS: tuple[Kind, ...] = (
    Kind(
        "unit-harmonization",
        "science",
        (
            "Convert the lengths in {inputs} .",
            "Bring the lengths in {inputs} to one unit .",
            "Change the unit of {inputs} .",
        ),
        (
            "{print $1 FS $2}",
            "{print $1 FS $2*100}",
            "{print $1 FS $2*1000}",
            "{print $1 FS $2*10}",
        ),
        formats=True,
        buffered=0.5,
    ),
    Kind(
        "data-cleaning-and-normalization",
        "data",
        (
            "Clean the missing values in {inputs} .",
            "Repair the empty fields of {inputs} .",
            "Normalize the gaps in {inputs} .",
        ),
        (
            '$2!=""{print $1 FS $2}',
            '{print $1 FS ($2==""?0:$2)}',
            '{if($2!="")p=$2; print $1 FS p+0}',
            '{print $1 FS ($2==""?"na":$2)}',
        ),
        in_place=True,
        blanks=True,
    ),
    Kind(
        "schema-mapping-and-transformation",
        "data",
        ("Reshape {inputs} .", "Bring {inputs} into the new schema .", "Transform the layout of {inputs} ."),
        (
            '{s=s (NR>2?FS:"") $2} END{print s}',
            "{print $1; print $2}",
            "{print $2}",
            "{print $1}",
        ),
        parts=2,
        formats=True,
    ),
    Kind(
        "tabular-aggregation-and-reporting",
        "finance",
        ("Aggregate {inputs} by id .", "Compute the grouped figures of {inputs} .", "Report {inputs} by group ."),
        (
            _GROUP.format(update="v[$1]+=$2", value="v[o[i]]"),
            _GROUP.format(update="if(n[$1]==1||$2>v[$1])v[$1]=$2", value="v[o[i]]"),
            _GROUP.format(update="if(n[$1]==1||$2<v[$1])v[$1]=$2", value="v[o[i]]"),
            _GROUP.format(update="", value="n[o[i]]"),
        ),
        buffered=0.5,
        report=True,
        repeats=True,
    ),
    Kind(
        "information-extraction",
        "office",
        (
            "Extract the record from {inputs} .",
            "Pull the wanted entry out of {inputs} .",
            "Find the record in {inputs} .",
        ),
        (
            "NR==2{print $1 FS $2}",
            "{s=$1 FS $2} END{print s}",
            "NR==2||$2>m{m=$2; s=$1 FS $2} END{print s}",
            "NR==2||$2<m{m=$2; s=$1 FS $2} END{print s}",
        ),
        parts=2,
        formats=True,
    ),
    Kind(
        "cross-source-reconciliation",
        "finance",
        (
            "Reconcile the two sources in {inputs} .",
            "Match the sources in {inputs} .",
            "Resolve the differences in {inputs} .",
        ),
        (
            "{print $1 FS $2}",
            "{print $1 FS $3}",
            "{print $1 FS $2 FS $3}",
            "{print $1 FS $2+$3}",
        ),
        buffered=0.5,
        notes=True,
        sources=True,
    ),
    Kind(
        "artifact-diagnosis-and-repair",
        "software",
        ("Repair the broken file {inputs} .", "Fix the defect in {inputs} .", "Diagnose and mend {inputs} ."),
        (
            '$2!=""{print $1 FS $2}',
            '{print $1 FS ($2==""?0:$2)}',
            '{print $1 FS ($2==""?"na":$2)}',
            "{print $2 FS $1}",
        ),
        in_place=True,
        formats=True,
        blanks=True,
    ),
    Kind(
        "system-configuration-and-administration",
        "software",
        (
            "Set the mode in {inputs} .",
            "Configure the service in {inputs} .",
            "Bring the setting in {inputs} to its state .",
        ),
        (
            '{print $1 FS (NR==2?"on":$2)}',
            '{print $1 FS (NR==2?"off":$2)}',
            '{print $1 FS (NR==2?"auto":$2)}',
            '{print $1 FS (NR==2?"safe":$2)}',
        ),
        in_place=True,
        notes=True,
    ),
    Kind(
        "log-and-incident-analysis",
        "security",
        ("Analyse the logs {inputs} .", "Find the events in {inputs} .", "Collect the incident from {inputs} ."),
        (
            "$2>5{print $1}",
            "$2<=5{print $1}",
            "$2%2==1{print $1}",
            "$2%2==0{print $1}",
        ),
        parts=2,
        buffered=0.5,
    ),
    Kind(
        "document-classification",
        "office",
        (
            "Label the items in {inputs} .",
            "Classify every item of {inputs} .",
            "Sort the items of {inputs} into classes .",
        ),
        (
            '{print $1 FS ($2>5?"yes":"no")}',
            '{print $1 FS ($2<=5?"yes":"no")}',
            '{print $1 FS ($2%2==1?"yes":"no")}',
            '{print $1 FS ($2%2==0?"yes":"no")}',
        ),
        formats=True,
        report=True,
    ),
    Kind(
        "form-and-record-completion",
        "office",
        (
            "Complete the form from {inputs} .",
            "Fill the record from {inputs} .",
            "Write the form with the facts of {inputs} .",
        ),
        (
            'NR==2{print "entry" FS $2}',
            '{s="entry" FS $2} END{print s}',
            '{t+=$2} END{print "entry" FS t}',
            'END{print "entry" FS NR-1}',
        ),
        notes=True,
        report=True,
    ),
    Kind(
        "anomaly-and-outlier-detection",
        "science",
        ("Flag the unusual rows of {inputs} .", "Find the outliers in {inputs} .", "Detect the anomaly in {inputs} ."),
        (
            "NR==2||$2>m{m=$2; s=$1} END{print s}",
            "NR==2||$2<m{m=$2; s=$1} END{print s}",
            "$2>5{print $1}",
            "$2%2==1{print $1}",
        ),
        formats=True,
        buffered=0.5,
    ),
)

PROFILES = ("alpha", "beta", "gamma", "delta")
SEPARATORS = {"comma": ",", "semi": ";", "pipe": "|"}
IDS = tuple("abcdefghjk")


def at_difficulty(kind: Kind, difficulty: str) -> Kind:
    """Return the kind at a difficulty: `easy` has no buffers, notes or formats; `hard` more buffers and parts."""
    if difficulty == "easy":
        return replace(kind, buffered=0.0, notes=False, formats=False)
    if difficulty == "hard":
        return replace(kind, buffered=1.0 if kind.buffered else 0.0, parts=3 if kind.parts > 1 else 1)
    return kind
