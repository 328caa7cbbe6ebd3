package command

import (
	"syscall"
	"time"
)

// changeTime is when a file was last changed in any way.
func changeTime(st *syscall.Stat_t) time.Time { return time.Unix(st.Ctimespec.Unix()) }
