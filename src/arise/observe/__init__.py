"""What a person or a tracker sees while a run goes on: terminal lines, live screen, trackers, alarms."""
