//go:build !linux

package cli

import "os"

// forgetTyped does nothing here: an unfinished line stays with the terminal.
func forgetTyped(*os.File) {}
