package external

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// killWith kills every process that has a variable in its environment. It repeats the
// search until it finds none, at most a hundred times, because a process may start
// others before it is killed.
func killWith(variable string) {
	looks := 100
	for found := true; found; time.Sleep(time.Millisecond) {
		if looks--; looks < 0 {
			return
		}
		found = false
		dir, err := os.Open("/proc")
		if err != nil {
			return
		}
		names, _ := dir.Readdirnames(-1)
		dir.Close()
		for _, name := range names {
			pid, err := strconv.Atoi(name)
			if err != nil || pid == os.Getpid() {
				continue
			}
			environ, err := os.ReadFile("/proc/" + name + "/environ")
			if err != nil || !strings.Contains("\x00"+string(environ)+"\x00", "\x00"+variable+"\x00") {
				continue
			}
			found = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
