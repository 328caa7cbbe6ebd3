//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attacks are attempts to get out that need more than a shell. Each returns
// nil when it worked.
var attacks = map[string]func(args []string) error{
	"tcp":          dial("tcp"),
	"unix":         dial("unix"),
	"udp":          udp,
	"family":       family,
	"ptrace":       ptrace,
	"peek":         peek,
	"memory":       memory,
	"limit":        limit,
	"segment":      segment,
	"tiocsti":      pushInput,
	"keyctl":       systemCall(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, specialSession, 1),
	"io_uring":     ioUring,
	"bpf":          systemCall(unix.SYS_BPF, 0xffff, 0, 0),
	"handle":       systemCall(unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(0), 0, 0),
	"open-for-ptr": openMemory,
	"files":        strangeFiles,
	"call":         call,
	"openat2":      openHow,
	"get":          get,
	"tunnel":       tunnel,
	"visit":        visit,
	"itself":       itself,
}

// attack runs one of the attacks in a process of its own.
func attack(name string, args []string) int {
	if err := attacks[name](args); err != nil {
		fmt.Println(name+":", err)
		return 1
	}
	return 0
}

func dial(network string) func([]string) error {
	return func(args []string) error {
		c, err := net.Dial(network, args[0])
		if err != nil {
			return err
		}
		return c.Close()
	}
}

// udp sends a datagram and waits for the answer: sending alone says nothing.
func udp(args []string) error {
	c, err := net.Dial("udp", args[0])
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte("secret")); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 16))
	return err
}

// call makes a system call of a number with the arguments that the words say.
func call(words []string) error {
	free, err := os.Open("free")
	if err != nil {
		return err
	}
	defer free.Close()
	here := unix.AT_FDCWD
	path := func(name string) uintptr { return uintptr(unsafe.Pointer(&append([]byte(name), 0)[0])) }
	known := map[string]uintptr{
		"here": uintptr(here), "opened": free.Fd(), "free": path("free"), "new": path("new"), "dir": path("."), "mode": unix.S_IFREG | unix.S_ISUID | 0o755,
	}
	var args [5]uintptr
	for i, w := range words {
		n, err := strconv.Atoi(w)
		if args[i] = uintptr(n); err != nil {
			args[i] = known[w]
		}
	}
	_, _, errno := unix.Syscall6(args[0], args[1], args[2], args[3], args[4], 0, 0)
	return orNil(errno)
}

// openHow makes a file whose mode no filter sees.
func openHow([]string) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, "new", &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: unix.S_ISUID | 0o755})
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// limit bounds what another process may use.
func limit(args []string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	return unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
}

// segment opens memory that another process shares.
func segment(args []string) error {
	id, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	_, err = unix.SysvShmAttach(id, 0, 0)
	return err
}

func family(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	fd, err := unix.Socket(n, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func ptrace(args []string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := unix.PtraceSeize(pid); err != nil {
		return err
	}
	// It goes on when this process is gone.
	return nil
}

// peek reads another process's memory where its program is mapped.
func peek(args []string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	b := make([]byte, 8)
	local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
	_, err = unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 1, Len: len(b)}}, 0)
	if errors.Is(err, unix.EFAULT) { // it was allowed, and there is nothing
		return nil
	}
	return err
}

func openMemory(args []string) error {
	f, err := os.OpenFile("/proc/"+args[0]+"/mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// memory holds some megabytes until it is ended for it.
func memory(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	b := make([]byte, n<<20)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	time.Sleep(time.Minute)
	runtime.KeepAlive(b)
	return nil
}

// pushInput types into a terminal of its own, as a program could into that of its
// parent.
func pushInput([]string) error {
	if _, err := unix.Setsid(); err != nil && !errors.Is(err, unix.EPERM) {
		return err
	}
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return err
	}
	slave, err := unix.Open("/dev/pts/"+strconv.Itoa(n), unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	key := byte('x')
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(slave), unix.TIOCSTI, uintptr(unsafe.Pointer(&key)))
	return orNil(errno)
}

const specialSession = ^uintptr(2) // KEY_SPEC_SESSION_KEYRING

// systemCall works when the kernel looks at the arguments, which are wrong.
func systemCall(number, a, b, c uintptr) func([]string) error {
	return func([]string) error {
		_, _, errno := unix.Syscall(number, a, b, c)
		if errno == unix.EPERM || errno == unix.ENOSYS {
			return errno
		}
		return nil
	}
}

func ioUring([]string) error {
	var params [120]byte
	_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	return orNil(errno)
}

// strangeFiles finds a file open that this process did not open.
func strangeFiles([]string) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name, _ := os.Readlink("/proc/self/fd/" + e.Name()); strings.HasSuffix(name, "/outside/file") {
			return nil
		}
	}
	return errors.New("there is none")
}

func orNil(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
