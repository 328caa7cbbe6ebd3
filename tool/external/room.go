package external

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The files of a room.
const (
	resultFile = "result"
	promptFile = "prompt"
)

const (
	// roomPrefix begins the names of rooms, and newPrefix those of rooms that are not
	// locked yet.
	roomPrefix = "pawl-process-"
	newPrefix  = ".pawl-process-"

	nonBlocking = syscall.O_NONBLOCK
)

// room is a directory for one program's files. The process that started the program
// locks it while it lives, and the room's name in the environment identifies the
// processes of the program, so that those of a killed Pawl can be found.
type room struct {
	dir  string
	lock *os.File
}

func newRoom() (*room, error) {
	dir, err := os.MkdirTemp("", newPrefix+"*")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the program: %w", err)
	}
	named := filepath.Join(filepath.Dir(dir), roomPrefix+strings.TrimPrefix(filepath.Base(dir), newPrefix))
	lock, err := held(dir)
	if err == nil {
		err = os.Rename(dir, named)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a directory for the program: %w", err), os.RemoveAll(dir))
	}
	return &room{dir: named, lock: lock}, nil
}

// held locks a directory; the error reports that another process holds it.
func held(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// leave kills the rest of the program and removes the room.
func (r *room) leave() {
	killWith(ResultVariable + "=" + r.file(resultFile))
	_ = os.RemoveAll(r.dir)
	_ = r.lock.Close()
}

// sweep kills programs whose Pawl was killed. It ignores rooms that it cannot examine.
func sweep() {
	names, _ := filepath.Glob(filepath.Join(os.TempDir(), roomPrefix+"*"))
	for _, dir := range names {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || !mine(info) {
			continue
		}
		if lock, err := held(dir); err == nil {
			(&room{dir: dir, lock: lock}).leave()
		}
	}
}

func mine(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

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
