#!/bin/bash
awk -F, '$2 > 40 { print $1 }' people.csv | sort > older.txt
