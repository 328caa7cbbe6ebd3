package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// forgetTyped drops the unread input of a terminal, including an unfinished line.
func forgetTyped(terminal *os.File) {
	_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
