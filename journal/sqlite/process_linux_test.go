package sqlite_test

import "fmt"

// playWithDisk plays the parts for which a process must reach the disk or the
// locks of its files.
func playWithDisk(part, path string) error {
	switch part {
	case "stall":
		return driveUntilStalled(path)
	case "older":
		return leaveOlderLocks(path)
	case "upgrade":
		return upgradeUntilKilled(path)
	}
	return fmt.Errorf("unknown part %s", part)
}
