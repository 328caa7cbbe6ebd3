//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// unshare makes a command start in new namespaces, with the capabilities that building
// them needs.
func unshare(attr *syscall.SysProcAttr, network egress.Network) {
	attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC
	if network != egress.NetworkHost {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN}
	// Root maps all existing users, because workspaces may belong to others; only the
	// process outside may do so. Another user maps only itself, and does so inside: a
	// process that hides itself cannot open the files of its child.
	if os.Getuid() == 0 {
		attr.UidMappings, attr.GidMappings = everybody("/proc/self/uid_map"), everybody("/proc/self/gid_map")
	}
}

// everybody maps all existing ids to themselves.
func everybody(file string) []syscall.SysProcIDMap {
	b, _ := os.ReadFile(file)
	var all []syscall.SysProcIDMap
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 {
			first, _ := strconv.Atoi(f[0])
			count, _ := strconv.Atoi(f[2])
			all = append(all, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: count})
		}
	}
	return all
}

// build builds new namespaces before a command starts.
func (u *unshared) build() error {
	if u.User != nil {
		if err := mapMyself(*u.User, *u.Group); err != nil {
			return fmt.Errorf("map the user: %w", err)
		}
	}
	if err := mountAll(u.Mounts); err != nil {
		return err
	}
	if u.Loopback {
		if err := raiseLoopback(); err != nil {
			return fmt.Errorf("start the loopback: %w", err)
		}
	}
	return nil
}

// mapMyself makes this process the user that it was outside. Its groups stay, because
// dropping them would change which files it can access.
func mapMyself(user, group int) error {
	for _, m := range []struct{ file, text string }{
		{"setgroups", "deny"}, {"uid_map", fmt.Sprintf("%d %d 1", user, user)}, {"gid_map", fmt.Sprintf("%d %d 1", group, group)},
	} {
		if err := os.WriteFile("/proc/self/"+m.file, []byte(m.text), 0); err != nil {
			return err
		}
	}
	return nil
}

// raiseLoopback enables the loopback interface of a new network.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// mountAll builds a file system from steps. It opens all sources before the first mount
// covers any of them.
func mountAll(mounts []mount) error {
	steps, err := prepared(mounts)
	defer func() {
		for _, s := range steps {
			_ = unix.Close(s.tree)
		}
	}()
	if err != nil {
		return err
	}
	for _, s := range steps {
		if err := s.put(); err != nil && !(s.Optional && errors.Is(err, unix.ELOOP)) {
			return fmt.Errorf("mount %s: %w", s.At, err)
		}
	}
	return nil
}

// step is a mount that is created but not yet attached.
type step struct {
	mount
	tree int
}

func prepared(mounts []mount) ([]step, error) {
	var steps []step
	for _, m := range mounts {
		for _, m := range m.parts() {
			tree, err := m.tree()
			switch {
			case m.Optional && errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return steps, fmt.Errorf("mount %s: %w", m.At, err)
			default:
				steps = append(steps, step{m, tree})
			}
		}
	}
	return steps, nil
}

const (
	// The kinds of mount in a directory of devices.
	mountDevice    mountKind = "device"
	mountTerminals mountKind = "terminals"
	mountLink      mountKind = "link"
	mountSeal      mountKind = "seal"
)

// parts returns the steps of a step.
func (m mount) parts() []mount {
	parts := []mount{m}
	switch m.Kind {
	case mountProcesses:
		for _, name := range []string{"bus", "irq", "sys", "sysrq-trigger"} { // settings of the whole machine
			path := m.At + "/" + name
			parts = append(parts, mount{Kind: mountBind, From: path, At: path, ReadOnly: true, Optional: true})
		}
		return parts
	case mountDevices:
		return m.devices()
	}
	return parts
}

// devices returns the steps of a directory of devices.
func (m mount) devices() []mount {
	parts := []mount{{Kind: mountMemory, At: m.At, Size: 1 << 20}}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		parts = append(parts, mount{Kind: mountDevice, From: "/dev/" + name, At: m.At + "/" + name, Optional: true})
	}
	for _, l := range [][2]string{{"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"}, {"ptmx", "pts/ptmx"}} {
		parts = append(parts, mount{Kind: mountLink, From: l[1], At: m.At + "/" + l[0]})
	}
	return append(parts,
		mount{Kind: mountTerminals, At: m.At + "/pts"},
		mount{Kind: mountMemory, At: m.At + "/shm", Size: m.Size, Mode: 0o1777},
		mount{Kind: mountSeal, At: m.At})
}

// tree creates the mount of a step without attaching it; -1 if the step needs none.
func (m mount) tree() (int, error) {
	switch m.Kind {
	case mountBind, mountDevice:
		if m.At == "/" {
			return -1, nil
		}
		return m.clone()
	case mountMemory:
		options := [][2]string{{"mode", fmt.Sprintf("%o", m.permissions())}}
		if m.Size > 0 {
			options = append(options, [2]string{"size", fmt.Sprint(m.Size)})
		}
		return newFileSystem("tmpfs", m.attributes(), options...)
	case mountProcesses:
		return newFileSystem("proc", m.attributes()|unix.MOUNT_ATTR_NOEXEC)
	case mountTerminals:
		return newFileSystem("devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, [2]string{"ptmxmode", "0666"}, [2]string{"mode", "0620"})
	}
	return -1, nil
}

func (m mount) permissions() uint32 {
	if m.Mode == 0 {
		return 0o755
	}
	return m.Mode
}

func (m mount) attributes() int {
	attributes := unix.MOUNT_ATTR_NOSUID
	if m.Kind != mountDevice {
		attributes |= unix.MOUNT_ATTR_NODEV
	}
	if m.ReadOnly {
		attributes |= unix.MOUNT_ATTR_RDONLY
	}
	return attributes
}

// clone returns a copy of the source of a bind. It follows no links, because a
// concurrent command may replace a directory by a link.
func (m mount) clone() (int, error) {
	from, err := openPath(m.From)
	if err != nil {
		return -1, err
	}
	defer unix.Close(from)
	tree, err := unix.OpenTree(from, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, err
	}
	return tree, m.restrict(tree, "", unix.AT_EMPTY_PATH)
}

// restrict sets the attributes of a step on a tree of mounts.
func (m mount) restrict(dir int, path string, flags uint) error {
	attr := unix.MountAttr{Attr_set: uint64(m.attributes()), Propagation: unix.MS_PRIVATE}
	return unix.MountSetattr(dir, path, flags|unix.AT_RECURSIVE, &attr)
}

func newFileSystem(name string, attributes int, options ...[2]string) (int, error) {
	fd, err := unix.Fsopen(name, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	for _, o := range options {
		if err := unix.FsconfigSetString(fd, o[0], o[1]); err != nil {
			return -1, fmt.Errorf("%s: %w", o[0], err)
		}
	}
	if err := unix.FsconfigCreate(fd); err != nil {
		return -1, err
	}
	return unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, attributes)
}

// put attaches the mount of a step.
func (s step) put() error {
	switch {
	case s.Kind == mountLink:
		return os.Symlink(s.From, s.At)
	case s.Kind == mountSeal:
		return unix.MountSetattr(unix.AT_FDCWD, s.At, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	case s.At == "/": // the root is a mount of these namespaces already
		return s.restrict(unix.AT_FDCWD, s.At, 0)
	}
	var st unix.Stat_t
	if err := unix.Fstat(s.tree, &st); err != nil {
		return err
	}
	at, err := openTarget(s.At, st.Mode&unix.S_IFMT == unix.S_IFDIR)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return unix.MoveMount(s.tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// openTarget opens a mount point, and creates it if necessary.
func openTarget(path string, dir bool) (int, error) {
	at, err := openPath(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return at, err
	}
	in, err := openTarget(filepath.Dir(path), true)
	if err != nil {
		return -1, err
	}
	defer unix.Close(in)
	if name := filepath.Base(path); dir {
		err = unix.Mkdirat(in, name, 0o755)
	} else {
		err = unix.Mknodat(in, name, unix.S_IFREG|0o644, 0)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return -1, err
	}
	return openPath(path)
}

// openPath opens a file or directory by its canonical name, without reading it.
func openPath(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
}
