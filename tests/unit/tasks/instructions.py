# ruff: noqa: E501 - prose
"""Instructions for tests of `arise tasks overlap`: distinct ones in any number, and twenty with a reworded version."""

import itertools
import random

REWORDED = (
    (
        "The access log in /app/logs/nginx.log has lines in combined format. Count how many requests each client IP made "
        "and write the ten busiest to /app/top.csv with the columns ip,count, most requests first.",
        "You are given an nginx access log in combined format at /app/logs/nginx.log. Produce /app/top.csv listing the 10 "
        "client IP addresses with the largest number of requests (columns ip and count), sorted from most to fewest.",
    ),
    (
        "Repair the PostgreSQL dump at /data/backup.sql so that psql restores it without errors, and save the repaired "
        "file as /data/fixed.sql. The dump breaks off in the middle of the orders table.",
        "Restoring /data/backup.sql with psql currently fails because the PostgreSQL dump is truncated inside the orders "
        "table. Fix the dump and store a version that restores cleanly at /data/fixed.sql.",
    ),
    (
        "Write a Python script solve.py that reads a Sudoku from standard input and prints the solved grid. It must solve "
        "the hardest puzzle in /app/puzzles within two seconds.",
        "Create solve.py, a Python program that takes a Sudoku grid on stdin and outputs its solution; every puzzle in "
        "/app/puzzles, even the most difficult, has to be solved in under 2 seconds.",
    ),
    (
        "Convert the Excel workbook sales.xlsx into one CSV file per sheet, named after the sheet in lower case, and put "
        "them into the folder out. Dates must be in ISO format.",
        "For each sheet of the sales.xlsx workbook, export a CSV into out/ whose name is the lower-cased sheet name. All "
        "dates should be written as ISO dates.",
    ),
    (
        "A git repository in /repo contains a commit that introduced a memory leak in cache.c. Find it with git bisect "
        "and write its hash to /repo/answer.txt.",
        "Somewhere in the history of /repo, a commit added a memory leak to cache.c. Use bisection to identify that commit "
        "and record the commit hash in /repo/answer.txt.",
    ),
    (
        "Train a logistic regression on train.csv that predicts the column churn, and write the predicted probabilities "
        "for test.csv to predictions.csv. The ROC AUC on the hidden labels must exceed 0.85.",
        "Using train.csv, fit a logistic regression model for the churn column and output churn probabilities for the rows "
        "of test.csv in predictions.csv; a hidden evaluation requires an AUC above 0.85.",
    ),
    (
        "Extract the text of every page of scan.pdf with OCR, correct the obvious spelling mistakes, and write the result "
        "as Markdown with one heading per page to scan.md.",
        "Run optical character recognition on all pages of scan.pdf. Fix clear spelling errors and save the text to "
        "scan.md as Markdown in which each page has its own heading.",
    ),
    (
        "Set up a systemd timer that runs /opt/backup.sh every night at 02:30 and keeps the last seven archives in "
        "/var/backups. Old archives are deleted.",
        "Schedule /opt/backup.sh to run nightly at half past two with a systemd timer, retaining only the seven most "
        "recent archives in /var/backups and removing the older ones.",
    ),
    (
        "Decrypt the file secret.enc. It was encrypted with AES-128 in CBC mode, and the key is the MD5 digest of a "
        "four-digit PIN. Write the plain text to secret.txt.",
        "secret.enc holds AES-128-CBC ciphertext whose key is the MD5 hash of an unknown PIN with four digits. Recover the "
        "plaintext and put it in secret.txt.",
    ),
    (
        "Given the adverse events in ae.csv and the dosing records in dose.csv, compute for every patient the days from "
        "first dose to first serious event, and write the Kaplan-Meier estimate to km.csv.",
        "From dose.csv and ae.csv determine each patient's time in days between the first dose and the first serious "
        "adverse event, then estimate the Kaplan-Meier curve and write it to km.csv.",
    ),
    (
        "Optimise the SQL query in slow.sql for the SQLite database shop.db. It must return the same rows at least ten "
        "times faster. You may add indexes but change no data.",
        "The query slow.sql is too slow on the SQLite database shop.db. Make it run ten times faster or better with "
        "identical results; adding indexes is fine, modifying data is not.",
    ),
    (
        "Port the Fortran program heat.f90 to Rust. The new program must read the same namelist file and produce the "
        "same numbers to six digits.",
        "Rewrite heat.f90, which is a Fortran program, in Rust so that it accepts the identical namelist input and its "
        "output agrees to 6 digits.",
    ),
    (
        "Render the scene scene.json with a path tracer written in C, at 640 by 480 pixels and 64 samples per pixel, and "
        "save the picture as out.ppm.",
        "Implement a path tracer in C that renders scene.json at 640x480 using 64 samples for each pixel; the image goes "
        "to out.ppm.",
    ),
    (
        "The payroll in hours.csv ignores overtime. Recompute it: hours above 40 per week are paid 1.5 times the rate. "
        "Write the corrected totals per employee to payroll.csv.",
        "Overtime is missing from the payroll computed from hours.csv. Pay weekly hours beyond 40 at one and a half times "
        "the hourly rate and write each employee's corrected total into payroll.csv.",
    ),
    (
        "Find the SQL injection in the Flask application in /srv/shop, prove it by dumping the users table to dump.txt, "
        "and then fix the vulnerable query with parameters.",
        "The Flask app under /srv/shop is vulnerable to SQL injection. Demonstrate this by writing the content of the "
        "users table to dump.txt, and patch the affected query to use parameters.",
    ),
    (
        "Simulate the queue of a car workshop with two lifts for 1,000 days. Arrivals are Poisson with 9 cars per day. "
        "Report the mean waiting time with its confidence interval in report.json.",
        "Run a 1000-day simulation of a garage that has two lifts and Poisson arrivals of nine cars a day, then put the "
        "average wait and a confidence interval into report.json.",
    ),
    (
        "Merge the subtitles en.srt and de.srt into one bilingual file both.srt. Shift the German ones by the constant "
        "offset that aligns them best.",
        "Combine en.srt with de.srt to get a bilingual subtitle file, both.srt, after moving the German subtitles by the "
        "single time offset which gives the best alignment.",
    ),
    (
        "Prove with the Lean files in /work/proof that the sum of the first n odd numbers is n squared. The build must "
        "contain no sorry.",
        "In /work/proof, complete the Lean proof that adding up the first n odd numbers yields n squared, such that the "
        "project builds without any sorry left.",
    ),
    (
        "Compress the folder of satellite tiles into a Cloud Optimized GeoTIFF with overviews and deflate compression, "
        "named mosaic.tif, in the projection EPSG:3857.",
        "Build mosaic.tif, a Cloud Optimized GeoTIFF in EPSG:3857 that mosaics all satellite tiles in the folder, using "
        "deflate compression and including overviews.",
    ),
    (
        "Write the tests that are missing for bank.py until branch coverage reaches 100 percent, without changing "
        "bank.py, and put them into test_bank.py.",
        "Bring the branch coverage of bank.py to 100 % by adding the missing tests in test_bank.py. The module bank.py "
        "itself may not be modified.",
    ),
)
"""Pairs of an instruction and the same task in other words."""

_SUBJECTS = (
    "the bearing temperatures of a gas turbine", "the invoices of a wholesaler", "the commits of a monorepo",
    "the packets of a captured TLS session", "the lab values of a dialysis ward", "the trades of a bond desk",
    "the frames of a drone video", "the spectra of a mass spectrometer", "the tickets of a help desk",
    "the genome reads of a yeast strain", "the shifts of a hospital", "the meshes of a wind-tunnel model",
    "the rules of a firewall", "the recordings of a choir", "the bookings of a ferry line", "the orbits of small moons",
    "the parcels of a land register", "the alerts of an intrusion detector", "the recipes of a paint factory",
    "the pages of a scanned atlas", "the logs of a message broker", "the weights of a small neural network",
    "the claims of an insurer", "the timetable of a tram network", "the symbols of a stripped binary",
    "the tides of a harbour", "the coupons of a supermarket", "the layers of a circuit board", "the votes of a council",
    "the pixels of an X-ray", "the samples of a river survey", "the threads of a mailing list",
    "the sensors of a greenhouse", "the chess games of a club", "the permits of a building office",
    "the queries of a search engine", "the cores of an ice drilling", "the loans of a library", "the flights of an airport",
    "the proteins of a membrane", "the coins of a collector", "the gestures of a data glove", "the wells of an oil field",
    "the certificates of a mail server", "the vines of a vineyard", "the dialects of a language atlas",
    "the gears of an astronomical clock", "the donations of a charity", "the crashes of a kernel",
)  # fmt: skip
_WORK = (
    "find the three that deviate most from their neighbours", "merge duplicates that differ in spelling only",
    "fit a seasonal model and forecast two weeks", "rebuild the index so that lookups stay below a millisecond",
    "translate every German label into English", "prove which of two versions is the original",
    "group them by a hierarchy that you derive from their names", "recover the entries that were deleted last",
    "turn them into a state machine and draw it", "compute the cost of each under the new tariff",
    "check them against the schema and repair what fails", "replace the hand-written parser by a grammar",
    "estimate the missing ones by interpolation", "order them so that no conflict remains",
    "encrypt those that carry personal data", "measure how much memory each needs and halve it",
    "write a program that answers questions about them", "reproduce the published figure from them",
    "split them into shards of equal size", "explain the outage on the second of March",
    "detect which were recorded twice at different gain", "port the old shell pipeline to a library",
    "derive the smallest rule set that gives the same result", "simulate what happens when one of them is lost",
    "assign each to the nearest depot by road", "render them as an animation of ten seconds",
    "estimate by bootstrap how certain their median is", "revert the change that made them inconsistent",
    "label each as urgent or not with a small classifier", "write the missing documentation for their fields",
    "find a cycle among their references and break it", "compress them without loss to a tenth",
    "calibrate them against the reference curve", "convert them to the exchange format of the ministry",
    "name the culprit who altered three of them", "solve for the allocation that wastes least",
    "compile the tool that reads them on a big-endian target", "build a bloom filter over their keys",
    "remove the noise below fifty hertz", "reconcile them with the ledger to the cent",
)  # fmt: skip
_RESULTS = (
    "a table in result.parquet", "a report of one page in report.md", "a JSON document out.json", "a patch fix.diff",
    "a PNG chart", "a SQLite database", "a signed archive", "a Makefile target that rebuilds it", "a REST endpoint",
    "a spreadsheet with one sheet for each year", "a unit test that fails without the change", "an SVG drawing",
)  # fmt: skip
_CONDITIONS = (
    "Use no network.", "The run must end within five minutes.", "Keep the inputs as they are.",
    "Round to three digits.", "Say which entries you left out and why.", "Only the standard library is installed.",
    "Sort by date, newest first.", "The checker compares byte by byte.", "Name the units.",
)  # fmt: skip


def distinct(count: int, seed: int = 0) -> list[str]:
    """Instructions of several sentences; no two ask for the same first piece of work on the same subject."""
    rng = random.Random(seed)
    return [
        f"The folder /data/{rng.randrange(1000)} holds {subject} and {other}. First {work}; then, for the second, "
        f"{rng.choice(_WORK)}. Deliver {rng.choice(_RESULTS)}. {' '.join(rng.sample(_CONDITIONS, 2))}"
        for (subject, work), other in zip(
            rng.sample(list(itertools.product(_SUBJECTS, _WORK)), count), rng.choices(_SUBJECTS, k=count), strict=True
        )
    ]


def nearly(text: str, rng: random.Random) -> str:
    """The text with a few small edits: a changed number, another case, an added sentence."""
    words = text.split()
    for _ in range(2):
        at = rng.randrange(len(words))
        words[at] = words[at].upper()
    words.insert(rng.randrange(len(words)), "please")
    return " ".join([*words, "Good luck."])
