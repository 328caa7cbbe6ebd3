package external

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// startOf is the moment at which a process started, in the kernel's ticks since the
// boot; empty where that cannot be known.
func startOf(pid int) string {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:]) // a program's name may hold anything
	if len(fields) < 20 {
		return ""
	}
	return string(fields[19])
}

// killWith ends every process that has a variable in its environment. It looks again
// as long as it finds one, a hundred times at most: what is found may start others
// before it is killed.
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
