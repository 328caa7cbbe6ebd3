package sandbox_test

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// escapesHere are those by system calls that only this architecture has.
var escapesHere = []escape{
	{name: "set a program's owner to run as by chmod", command: fmt.Sprintf(`cd open && "$SELF" attack call %d free mode && test -u free`, unix.SYS_CHMOD)},
	{name: "make a program that runs as its owner by creat", command: fmt.Sprintf(`cd open && "$SELF" attack call %d new mode && test -u new`, unix.SYS_CREAT)},
	{name: "make a program that runs as its owner by mknod", command: fmt.Sprintf(`cd open && "$SELF" attack call %d new mode 0 && test -u new`, unix.SYS_MKNOD)},
	{name: "make a program that runs as its owner by open", command: fmt.Sprintf(`cd open && "$SELF" attack call %d new %d mode && test -u new`, unix.SYS_OPEN, unix.O_CREAT)},
}
