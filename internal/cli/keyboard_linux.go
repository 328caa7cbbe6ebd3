package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// forgetTyped drops what a terminal has taken in and nobody has read, an
// unfinished line too.
func forgetTyped(terminal *os.File) {
	_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
