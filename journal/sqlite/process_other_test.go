//go:build !linux

package sqlite_test

import "fmt"

func playWithDisk(part, _ string) error { return fmt.Errorf("unknown part %s", part) }
