#!/bin/bash
# The verifier. The agent never sees this file.
reward=0
[ "$(cat older.txt 2>/dev/null)" = "$(printf 'Alan\nEdsger\nGrace')" ] && reward=1
echo $reward > /logs/verifier/reward.txt
