-- One run. Append-only but for `inflight`, which holds finished groups that a resume may still need. An iteration that is
-- replayed after a fall-back and comes out otherwise takes the place of the one before, and `vitals` says so.
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sessions (id INTEGER PRIMARY KEY, at REAL, owner TEXT, version TEXT, committed INTEGER);
CREATE TABLE IF NOT EXISTS iterations (
    k INTEGER PRIMARY KEY, metrics TEXT NOT NULL, state BLOB, checkpoint TEXT, at REAL);
CREATE TABLE IF NOT EXISTS tasks (id TEXT PRIMARY KEY, domain TEXT, task_types TEXT, instruction TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS draws (k INTEGER, slot INTEGER, task_id TEXT, path TEXT, details TEXT, PRIMARY KEY (k, slot));
CREATE TABLE IF NOT EXISTS rollouts (
    id TEXT PRIMARY KEY, k INTEGER, task_id TEXT, reward REAL, success INTEGER, stop TEXT, fault TEXT, turns INTEGER,
    generated_tokens INTEGER, advantage REAL, task_advantage REAL, rubric_advantage REAL,
    chunk TEXT, start INTEGER, length INTEGER);
CREATE INDEX IF NOT EXISTS rollouts_by_iteration ON rollouts (k, task_id, success, stop);
CREATE INDEX IF NOT EXISTS rollouts_with_fault ON rollouts (k) WHERE fault != '';
CREATE TABLE IF NOT EXISTS verdicts (
    rollout_id TEXT, rubric_id TEXT, k INTEGER, verdict TEXT, reason TEXT, shown INTEGER,
    PRIMARY KEY (rollout_id, rubric_id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS verdicts_by_rubric ON verdicts (rubric_id, k);
CREATE INDEX IF NOT EXISTS verdicts_absent ON verdicts (k, reason) WHERE verdict IS NULL;
CREATE TABLE IF NOT EXISTS evidence (evidence_id TEXT PRIMARY KEY, k INTEGER, record TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pairs (rubric_id TEXT PRIMARY KEY, born INTEGER, rubric TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS skills (
    rubric_id TEXT, revision INTEGER, k INTEGER, text TEXT, PRIMARY KEY (rubric_id, revision)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    k INTEGER, seq INTEGER, rubric_id TEXT, kind TEXT, passes INTEGER, evaluations INTEGER, revision INTEGER, note TEXT,
    PRIMARY KEY (k, seq)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS proposals (
    k INTEGER, seq INTEGER, accepted INTEGER, content TEXT, reason TEXT, PRIMARY KEY (k, seq)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempts (
    label TEXT, task_id TEXT, attempt INTEGER, k INTEGER, domain TEXT, task_type TEXT, success INTEGER, reward REAL,
    stop TEXT, fault TEXT, skill_bytes INTEGER, verdicts TEXT, PRIMARY KEY (label, task_id, attempt)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS inflight (k INTEGER, task_id TEXT, content BLOB, PRIMARY KEY (k, task_id)) WITHOUT ROWID;

-- Sums over the tables above and over the sampler's state, written in the same commit: a page never counts rollouts.
CREATE TABLE IF NOT EXISTS groups (
    k INTEGER, slot INTEGER, task_id TEXT, size INTEGER, rewarded INTEGER, successes INTEGER, reward REAL,
    PRIMARY KEY (k, slot)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS groups_by_task ON groups (task_id, k);
CREATE TABLE IF NOT EXISTS verdict_counts (
    rubric_id TEXT, k INTEGER, shown INTEGER, passes INTEGER, fails INTEGER, not_applicable INTEGER, absent INTEGER,
    PRIMARY KEY (rubric_id, k, shown)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS cells (
    k INTEGER, task_type TEXT, capability TEXT, passes REAL, fails REAL,
    PRIMARY KEY (k, task_type, capability)) WITHOUT ROWID;

-- Files beside this database, by digest: chunks of trajectories, manifests of checkpoints.
CREATE TABLE IF NOT EXISTS files (name TEXT PRIMARY KEY, k INTEGER, bytes INTEGER, sha256 TEXT) WITHOUT ROWID;
-- The digest of all rows of an iteration (`k12`) or of an evaluation (`evaluation before`), and apart from these, since no
-- replay repeats them, of an iteration's clock time and costs (`costs k12`), of a session and of a fact in `meta`.
CREATE TABLE IF NOT EXISTS seals (name TEXT PRIMARY KEY, seal TEXT NOT NULL) WITHOUT ROWID;
-- What an iteration cost: `seconds.rollouts`, `peak_mib`, `judge.seconds`, ..., and calls up to its end: `spent.judge.usd`, ...
CREATE TABLE IF NOT EXISTS vitals (k INTEGER, name TEXT, value REAL, PRIMARY KEY (k, name)) WITHOUT ROWID;
