# ruff: noqa: E501 - prose
"""A third set for `arise tasks overlap`, written by hand without a look at its scores; nothing was fitted on it."""

NEAR = (
    (
        "Read the log files in /var/app/logs and count the requests of every client address. Save the ten most frequent addresses to /app/top.txt, one per line with its count.",
        "Read the log files in /var/app/logs and count the requests per client address. Save the 10 most frequent addresses to /app/top.txt, one per line together with its count.",
    ),
    (
        "Migrate the SQLite database shop.db to PostgreSQL. All tables, indexes and foreign keys must exist afterwards, and the row counts must be equal. The connection string is in DATABASE_URL.",
        "Migrate the SQLite database store.db to PostgreSQL. All tables, indexes and foreign keys must exist afterwards, and row counts must be equal. You find the connection string in DATABASE_URL.",
    ),
    (
        "Fit a Gaussian process to the points in train.csv and predict the mean and standard deviation for every row of grid.csv. Write predictions.csv with the columns x, mean and std.",
        "Please fit a Gaussian process to the points in train.csv and predict mean and standard deviation for every row of grid.csv. Write predictions.csv with the columns x, mean, std.",
    ),
    (
        "The function merge_intervals in intervals.py fails for intervals that touch. Correct it. Do not change its signature. All tests in test_intervals.py must pass.",
        "The function merge_intervals in intervals.py fails for intervals that only touch. Correct it and do not change the signature. All tests in test_intervals.py must pass.",
    ),
    (
        "Compress the folder /data/images losslessly so that the total size falls below 40 MB. Every picture must decode to exactly the same pixels as before.",
        "Compress the folder /data/pictures losslessly so that the total size falls below 40 MB. Every picture has to decode to exactly the same pixels as before.",
    ),
    (
        "Given the term sheet in termsheet.pdf, compute the price of the convertible bond with a binomial tree of 500 steps. Write the price, delta and gamma to result.json, rounded to four decimals.",
        "Given the term sheet in termsheet.pdf, compute the price of the convertible bond with a binomial tree of 500 steps. Write price, delta and gamma to result.json, rounded to 4 decimals. Use no other file.",
    ),
    (
        "Write a shell script /usr/local/bin/backup that makes an incremental backup of /home to /backup with rsync and keeps the last seven days. It must be safe to run twice at the same time.",
        "Write a shell script /usr/local/bin/backup that makes an incremental backup of /home to /backup using rsync and keeps the last seven days. It has to be safe to run twice at the same time.",
    ),
    (
        "Align the reads in sample.fastq to reference.fa with bwa, call variants, and report all variants with a quality above 30 in variants.vcf.",
        "Align the reads in sample.fastq to reference.fa with bwa, then call variants and report all variants of a quality above 30 in variants.vcf.",
    ),
    (
        "Create a presentation deck.pptx with five slides from the notes in notes.md. Every slide needs a title, at most five bullet points and one chart from figures/.",
        "Create a presentation deck.pptx with six slides from the notes in notes.md. Every slide needs a title, at most five bullet points, and one chart from figures/.",
    ),
    (
        "Decrypt message.enc. The key was derived from a four-digit pin with PBKDF2, 1000 iterations, and the salt in salt.bin. Save the plain text as message.txt.",
        "Decrypt the file message.enc. The key was derived from a four-digit PIN with PBKDF2 (1000 iterations) and the salt in salt.bin. Save the plain text as message.txt.",
    ),
    (
        "Replace the deprecated calls of the requests library in src/ by httpx. The public functions keep their names, and `pytest -q` must succeed.",
        "Replace all deprecated calls of the requests library in src/ by httpx. The public functions keep their names and `pytest -q` must succeed at the end.",
    ),
    (
        "Simulate the double pendulum described in params.yaml for 60 seconds with a time step of one millisecond. The total energy may drift by at most 0.1 percent. Save the angles to angles.npy.",
        "Simulate the double pendulum described in params.yaml for 60 seconds with a time step of 1 millisecond. Total energy may drift by at most 0.1 percent. Save both angles to angles.npy.",
    ),
    (
        "From payroll.xlsx compute gross pay, tax and net pay of each employee for March according to rules.md, and write payslips.xlsx with one sheet per employee.",
        "From payroll.xlsx compute gross pay, tax and net pay of each employee for April according to rules.md, and write payslips.xlsx with one sheet for each employee.",
    ),
    (
        "Bring up a three-node etcd cluster on ports 2379, 2479 and 2579. Kill the leader, wait for a new election, and write the name of the new leader to leader.txt.",
        "Bring up a 3-node etcd cluster on the ports 2379, 2479 and 2579. Kill the leader, wait for the new election and write the name of the new leader to leader.txt.",
    ),
    (
        "Solve the sudoku puzzles in puzzles.txt. Each line has 81 characters, a dot is an empty cell. Write the solutions in the same format to solutions.txt. The whole run may take ten seconds.",
        "Solve the sudoku puzzles in puzzles.txt. Each line has 81 characters and a dot is an empty cell. Write the solutions in the same format to solved.txt. The whole run may take ten seconds.",
    ),
    (
        "Train a classifier on reviews.csv that tells positive from negative reviews. It must reach an accuracy of 0.85 on a hidden test set. Save the model to model.pkl and a script predict.py that uses it.",
        "Train a classifier on reviews.csv that tells positive from negative reviews. It must reach an accuracy of at least 0.85 on a hidden test set. Save the model to model.pkl, and a script predict.py that uses it.",
    ),
    (
        "Convert the LaTeX paper paper.tex to HTML with MathML. References and figure numbers must be links. The result is paper.html and must be valid according to the checker in /opt/vnu.",
        "Convert the LaTeX paper in paper.tex to HTML with MathML. References and figure numbers must be links. The result is paper.html, which must be valid according to the checker in /opt/vnu.",
    ),
    (
        "Find the memory leak in server.c with valgrind and fix it. After 10,000 requests of load.py the resident memory may have grown by at most 1 MB.",
        "Find the memory leak in server.c using valgrind and fix it. After 10,000 requests of load.py, resident memory may have grown by at most 1 MB.",
    ),
    (
        "Plan the delivery routes for the orders in orders.json with the three vans of vans.json. No van may carry more than its capacity, and the total distance must be below 240 km. Write routes.json.",
        "Plan delivery routes for the orders in orders.json with the three vans of vans.json. No van may carry more than its capacity and the total distance must be below 250 km. Write routes.json.",
    ),
    (
        "Write the git hook .git/hooks/commit-msg: it rejects messages whose first line is longer than 60 characters or does not begin with an area and a colon.",
        "Write the git hook .git/hooks/commit-msg. It rejects messages whose first line is longer than 60 characters, or does not begin with an area and a colon.",
    ),
)
"""An instruction and a copy with small changes."""

REWORDED = (
    (
        "Our bakery records its sales in sales.csv (date, product, pieces, price). Tell which product brought in the most money in each quarter of 2023 and write the answer as best.json, quarter to product name.",
        "sales.csv lists what a bakery sold: day, item, number of pieces, unit price. For every quarter of the year 2023 determine the item with the highest revenue, and store a mapping from quarter to item in best.json.",
    ),
    (
        "Two branches of the repository /repo, main and feature/cache, conflict in seven files. Merge them so that the behaviour of both is kept and the tests pass. Leave a single merge commit on main.",
        "In /repo the branch feature/cache cannot be merged into main without conflicts; seven files are affected. Resolve them without losing functionality from either side. Afterwards main has exactly one merge commit and all tests succeed.",
    ),
    (
        "Calculate the tidal heights for Bremerhaven for every hour of the first week of May from the harmonic constituents in constituents.csv and save them to tides.csv.",
        "constituents.csv holds the harmonic constituents of the tide at Bremerhaven. Use them to predict the water level hour by hour from 1 to 7 May, and output tides.csv.",
    ),
    (
        "Write a parser for the configuration language defined in grammar.ebnf. It must accept all files in good/, reject all in bad/ with the line number of the error, and be started as ./parse FILE.",
        "grammar.ebnf defines a language for configuration files. Implement ./parse FILE: files under good/ are accepted, those under bad/ are refused and the line where the error occurs is reported.",
    ),
    (
        "The nightly job cleanup.py deletes too many records because it compares local times with UTC. Fix the comparison and restore the wrongly deleted records from the journal in journal.jsonl.",
        "Because cleanup.py mixes up UTC and local time, it removes records that it should keep. Repair the bug, and use journal.jsonl to bring back what was deleted by mistake.",
    ),
    (
        "Determine the crystal structure from the powder diffraction pattern xrd.txt: name the space group and the lattice parameters in structure.json. The wavelength was 1.5406 angstrom.",
        "xrd.txt is a powder X-ray diffraction measurement taken at 1.5406 Å. Find out the lattice parameters and space group of the crystal and put them in structure.json.",
    ),
    (
        "Reduce the running time of query.sql on the database in flights.db from 40 seconds to less than one second. You may add indexes and rewrite the query, but its result must not change.",
        "query.sql takes forty seconds on flights.db. Make it return the identical result in under a second; rewriting the statement and creating indexes are both allowed.",
    ),
    (
        "Draft an answer to every complaint in complaints.mbox following the tone guide tone.md. Name the order number, apologise once, and offer the refund that policy.md prescribes. Save one file per complaint in answers/.",
        "complaints.mbox contains e-mails of unhappy customers. Reply to each of them in the style that tone.md describes, with the order number, one apology and the refund set out in policy.md; the directory answers/ receives one file per e-mail.",
    ),
    (
        "Make the website in /www work without JavaScript: all menus must open, the form must be submittable, and the page may not load anything from other hosts.",
        "Visitors who have JavaScript switched off cannot use the site in /www. Change it so that the menus unfold and the form can be sent for them too, and so that no third-party resources are requested.",
    ),
    (
        "Estimate the population of the lynx from the capture-recapture records in captures.csv with a Jolly-Seber model, and report survival and abundance for every season in lynx.csv.",
        "captures.csv documents when marked lynxes were caught again. Fit a Jolly-Seber model to it and list, season by season, the estimated abundance and survival in lynx.csv.",
    ),
    (
        "Set up a mail server with postfix that accepts mail for example.test only, forwards sales@example.test to the users anna and bob, and rejects messages above 5 MB.",
        "Install and configure postfix. Only mail addressed to example.test may be accepted; whatever goes to sales@example.test must reach both anna and bob; anything larger than 5 MB is refused.",
    ),
    (
        "Write a program in Rust that renders the Mandelbrot set as a 4000 by 4000 PNG in less than two seconds on four cores. The colours are given in palette.json.",
        "Produce a Rust program for drawing the Mandelbrot set: 4000x4000 pixels, saved as PNG, coloured according to palette.json, finished within two seconds when four cores are available.",
    ),
    (
        "Check the bibliography in refs.bib: find entries without a DOI, look up duplicates that differ in spelling only, and write the cleaned list to clean.bib.",
        "refs.bib needs tidying. Identify references lacking a DOI as well as duplicate entries whose spelling varies, then write a corrected bibliography named clean.bib.",
    ),
    (
        "Reconstruct the missing key frames of the animation walk.bvh. Joints may not leave the limits in limits.json, and the feet must not slide on the ground.",
        "Some key frames of walk.bvh are gone. Fill the gaps so that every joint respects limits.json and no foot slides while it touches the floor.",
    ),
    (
        "Compute the carbon footprint of the shipments in shipments.xlsx with the emission factors of factors.csv. Distances are great-circle distances between the ports in ports.csv. Save the tonnes per customer to footprint.csv.",
        "For each customer in shipments.xlsx work out how many tonnes of CO2 its freight caused. Take the great-circle distance between the harbours of ports.csv and the emission factors listed in factors.csv, and save footprint.csv.",
    ),
    (
        "The unit file worker.service restarts endlessly. Find out why, correct it, and make systemd give up after three failures within one minute.",
        "systemd keeps restarting worker.service. Discover and remove the cause, then change the unit such that it is abandoned once it has failed three times in sixty seconds.",
    ),
    (
        "Implement a spell checker that suggests corrections within edit distance two, using the word list words.txt. Suggestions are ordered by frequency. The command is ./suggest WORD and must answer within 50 ms.",
        "Write ./suggest WORD, which proposes spellings from words.txt that are at most two edits away, the most frequent first. A call may not take longer than 50 milliseconds.",
    ),
    (
        "Extract the floor areas of all rooms from the building model house.ifc and compare them with the areas in plan.csv. Report every room that differs by more than two percent in differences.csv.",
        "house.ifc describes a building. Read how large each room is and list those in differences.csv whose area deviates from plan.csv by over 2 %.",
    ),
    (
        "Teach the agent in agent.py to play Connect Four well enough to win at least 90 of 100 games against the opponent in opponent.py. A move may take 100 ms.",
        "agent.py plays Connect Four badly. Improve it until it beats opponent.py in no fewer than ninety games out of a hundred, with a limit of 0.1 seconds for a move.",
    ),
    (
        "Redact all names, addresses and account numbers in the scanned letters of letters/ with black boxes. The text below the boxes must not be extractable from the resulting PDF files in redacted/.",
        "The scans in letters/ contain personal data. Cover every name, address and account number with a black rectangle and save PDFs to redacted/ from which the hidden words cannot be recovered.",
    ),
)
"""An instruction and the same task in other words."""

DISTINCT = (
    "Count how many vowels occur in each chapter of novel.txt and draw a bar chart vowels.png.",
    "Write a Python class LRUCache with get and put in constant time to cache.py. The capacity is given to the constructor.",
    "Split video.mp4 at every scene change and save the parts as scene-001.mp4, scene-002.mp4 and so on.",
    "Configure the firewall with nftables such that only ports 22 and 443 are open from outside, and store the rules permanently.",
    "Given survey.sav, run a factor analysis with varimax rotation and report the loadings above 0.4 in loadings.csv.",
    "Generate a QR code for every row of guests.csv and arrange twelve of them on each page of badges.pdf.",
    "Fix the off-by-one error in paginate() of views.py. The last page must not be empty.",
    "Compute the eigenvalues of the sparse matrix in matrix.mtx that are closest to zero and write the first twenty to eig.txt.",
    "Write a Terraform module in modules/vpc that creates a network with three subnets. `terraform validate` must pass.",
    "Transcribe interview.wav and mark the speakers A and B in transcript.txt.",
    "Build the Linux kernel in /usr/src/linux with the configuration small.config. The image must be smaller than 3 MB.",
    "Estimate a hedonic price model for the flats in flats.csv and predict the price of the flats in new.csv.",
    "Recreate the layout of mockup.png as a single HTML file with flexbox. Do not use any framework.",
    "Port the Perl script report.pl to Python 3. Its output on the files in samples/ must stay byte for byte the same.",
    "Calculate the stress in every beam of truss.json under the loads in loads.json with the finite element method.",
    "Write unit tests for the module money.py that reach 100 % branch coverage.",
    "Answer the questions in questions.json with the knowledge graph graph.ttl using SPARQL. Save the answers to answers.json.",
    "Convert all recipes in recipes/ from cups and ounces to grams and millilitres.",
    "Create a schedule for the tournament: 16 teams, round robin, no team plays two home games in a row. Output schedule.csv.",
    "Implement the SHA-3 hash function in assembly for x86-64 and verify it with the vectors in kat.txt.",
    "Determine which of the five suspects in case.md committed the crime and justify the answer in verdict.md.",
    "Fill in the tax form form.pdf with the data of client.yaml. Leave fields empty that do not apply.",
    "Measure the resistance values in circuit.jpg from the colour codes and list them in resistors.csv.",
    "Add pagination and full-text search to the REST API in api/. The OpenAPI description must be updated too.",
    "Classify the stars in gaia.csv into main sequence, giants and white dwarfs and plot a Hertzsprung-Russell diagram.",
    "Write a Dockerfile for the Go program in cmd/. The final image starts from scratch and runs as user 65532.",
    "Repair the corrupted zip archive data.zip and extract as many files as possible to recovered/.",
    "Write a solver for nonograms. The clues are in clues.txt; print the picture with # and dots.",
    "Translate the user interface strings of en.json to French and German. Keep the placeholders.",
    "Detect anomalies in the heart rate recordings of ecg.dat and list the start of each in seconds.",
    "Set the permissions below /srv/share so that members of staff can write and guests can only read.",
    "Compute the genus of the knot that is given as a planar diagram code in knot.txt.",
    "Draw a family tree as SVG from the GEDCOM file family.ged.",
    "Optimise the portfolio in holdings.csv for minimum variance with no weight above ten percent.",
    "Add type annotations to the package utils/ until `mypy --strict` reports no error.",
    "Write a Prometheus exporter that publishes the queue length of RabbitMQ on port 9200.",
    "Reverse engineer the binary crackme and write the password it accepts to password.txt.",
    "Summarise the court decision judgment.pdf in 300 words for readers without legal training.",
    "Interpolate the rainfall of the stations in stations.csv to a grid of one kilometre with kriging.",
    "Rename the photos in album/ by the date and time in their EXIF data.",
    "Implement Conway's Game of Life for an unbounded grid and report the population after 10,000 generations of start.rle.",
    "Create a Word document contract.docx from template.docx and parties.json with numbered clauses.",
    "Solve the travelling maintenance problem: machines in machines.csv need service at given intervals; find a plan for one technician.",
    "Write a Vim plugin that sorts Python imports on save.",
    "Find the shortest addition chain for each number in numbers.txt.",
    "Calibrate the camera from the chessboard pictures in calib/ and save the intrinsic matrix to camera.yaml.",
    "Explain the failing assertion in the Isabelle theory Sorting.thy and complete the proof.",
    "Compare the nutrition labels in labels/ with the limits in eu.csv and name products that break them.",
    "Write a GraphQL server for the books in books.json with queries by author and year.",
    "Denoise the seismogram trace.mseed and pick the arrival of the P wave.",
    "Convert the spreadsheet budget.ods into a double-entry ledger file budget.journal that balances.",
    "Make the Android layout in res/layout/main.xml usable with a screen reader.",
    "Compose a four-voice harmonisation of melody.abc in the style of a chorale, without parallel fifths.",
    "Check the welding certificates in certs/ for expiry before 2026 and write a reminder list.",
    "Write a bash completion script for the command `fleet` from the output of `fleet --help`.",
    "Segment the cells in microscope.tif, count them and give the mean area in square micrometres.",
    "Implement gradient checkpointing for the network in net.py and halve its peak memory.",
    "Derive the equations of motion of the cart-pole system with SymPy and save them as LaTeX in eom.tex.",
    "Find all broken links in the Markdown files of docs/ and replace those that moved.",
    "Design primers for the gene in gene.gb with a melting temperature between 58 and 62 degrees and save them to primers.csv.",
)
"""Tasks of their own."""
