#!/bin/bash
# The verifier. The agent never sees this file.
reward=0
[ "$(cat total.txt 2>/dev/null)" = "6" ] && reward=1
echo $reward > /logs/verifier/reward.txt
