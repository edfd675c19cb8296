"""Observe a run: terminal lines, live screen, summary, trackers, alarms."""
