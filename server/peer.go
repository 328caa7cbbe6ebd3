package server

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/engine"
)

// Peers admits the processes of one user of this machine that no run has
// started: it looks the connection up in the kernel's tables.
type Peers struct {
	// Proc is where the kernel's tables are; empty means /proc.
	Proc string
	// UID is the user who is admitted, -1 for all: then tokens say who it is.
	UID int
	// Drivers are the owners of the runs that are going, each with one of its
	// runs; see [control.Controller.Drivers].
	Drivers func(ctx context.Context) (map[string]string, error)
}

// OwnUser admits this process's user only, and nothing that a run has started:
// a run could otherwise decide about its own calls. The error says that this
// machine does not tell who connects.
func OwnUser(controller *control.Controller) (Admit, error) {
	p := Peers{UID: os.Getuid(), Drivers: controller.Drivers}
	if _, _, err := p.find(netip.AddrPort{}, netip.AddrPort{}); err != nil {
		return nil, fmt.Errorf("server: this machine does not tell which user connects: %w", err)
	}
	return p.Admit, nil
}

// TokenHolders admits all but what a run has started: a run could otherwise use the
// token of somebody else. Where this machine does not tell which processes connect
// it admits all.
func TokenHolders(controller *control.Controller) Admit {
	p := Peers{UID: -1, Drivers: controller.Drivers}
	if _, _, err := p.find(netip.AddrPort{}, netip.AddrPort{}); err != nil {
		return func(context.Context, netip.AddrPort, netip.AddrPort) error { return nil }
	}
	return p.Admit
}

// Admit implements the type of that name.
func (p Peers) Admit(ctx context.Context, there, here netip.AddrPort) error {
	end, listed, err := p.find(there, here)
	if err != nil {
		return kindForbidden.problem("decide at the command line, with 'pawl runs'", "it cannot be told which user connects: %v", err)
	}
	if !listed && p.UID < 0 && !ofThisMachine(there.Addr()) {
		return nil
	}
	// A socket that its process has closed belongs to nobody any more, and is
	// listed as the superuser's.
	if !listed || end.inode == "0" {
		return kindForbidden.problem("keep the connection open until the answer is there", "it cannot be told which user connects from %s", there)
	}
	if uid := end.uid; p.UID >= 0 && uid != p.UID {
		return kindForbidden.problem("ask as the user who started the server", "the connection is of the user %d; the server is open to the user %d alone", uid, p.UID)
	}
	return p.notOfRun(ctx, end.inode)
}

// ofThisMachine reports whether an address is one of this machine, or may be.
func ofThisMachine(a netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	return err != nil || a.IsLoopback() || slices.ContainsFunc(own, func(each net.Addr) bool {
		prefix, err := netip.ParsePrefix(each.String())
		return err != nil || prefix.Addr().Unmap() == a.Unmap().WithZone("")
	})
}

// notOfRun refuses a socket that a process holds which drives a run or was
// started by one. Supervisors do not show what they hold, and a command can hide
// that as well. Where one of them hides it, somebody in plain sight whom no run
// has started must hold the socket.
func (p Peers) notOfRun(ctx context.Context, inode string) error {
	drivers, err := p.Drivers(ctx)
	if err != nil || len(drivers) == 0 {
		return err
	}
	pids, err := p.processes()
	if err != nil {
		return err
	}
	const next = "a person must do this, from a process of their own"
	owners, ancestry := slices.Sorted(maps.Keys(drivers)), engine.NewAncestry()
	var others []int
	hidden, hider := 0, ""
	for _, pid := range pids {
		driver := slices.IndexFunc(owners, func(owner string) bool { return ancestry.ComesFrom(pid, owner) })
		if driver < 0 {
			others = append(others, pid)
			continue
		}
		run := drivers[owners[driver]]
		switch holds, err := p.holds(pid, inode); {
		case err != nil:
			hidden, hider = pid, run
		case holds:
			return kindForbidden.problem(next, "the request comes from process %d, which run %s has started; a run cannot use the server", pid, run).about(run, "")
		}
	}
	inPlainSight := func(pid int) bool { holds, err := p.holds(pid, inode); return err == nil && holds }
	if hidden == 0 || slices.ContainsFunc(others, inPlainSight) {
		return nil
	}
	return kindForbidden.problem(next, "process %d, which run %s has started, does not show whether the request is its own, and no other process shows that it is", hidden, hider).about(hider, "")
}

// processes are the numbers of the processes of this machine.
func (p Peers) processes() ([]int, error) {
	entries, err := os.ReadDir(p.proc())
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// holds reports whether a process has a socket open. One that has ended has none;
// the error is that of a process which does not show what it has.
func (p Peers) holds(pid int, inode string) (bool, error) {
	dir := filepath.Join(p.proc(), strconv.Itoa(pid), "fd")
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, f := range files {
		// A file that was closed meanwhile is not the one that waits for our
		// answer.
		if to, err := os.Readlink(filepath.Join(dir, f.Name())); err == nil && to == "socket:["+inode+"]" {
			return true, nil
		}
	}
	return false, nil
}

func (p Peers) proc() string { return cmp.Or(p.Proc, "/proc") }

// socket is one line of the kernel's table of TCP connections.
type socket struct {
	local, remote netip.AddrPort
	uid           int
	inode         string
}

// find looks a connection up by its ends. The kernel takes milliseconds to write
// a table, so no more of them is read than must be. A system without IPv6 has one.
func (p Peers) find(local, remote netip.AddrPort) (found socket, listed bool, err error) {
	for _, name := range []string{"tcp", "tcp6"} {
		found, listed, err = p.findIn(name, local, remote)
		if errors.Is(err, fs.ErrNotExist) && name == "tcp6" {
			return socket{}, false, nil
		}
		if listed || err != nil {
			return found, listed, err
		}
	}
	return socket{}, false, nil
}

func (p Peers) findIn(table string, local, remote netip.AddrPort) (socket, bool, error) {
	f, err := os.Open(filepath.Join(p.proc(), "net", table))
	if err != nil {
		return socket{}, false, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if s, ok := parseSocket(lines.Text()); ok && s.local == local && s.remote == remote {
			return s, true, nil
		}
	}
	return socket{}, false, lines.Err()
}

// parseSocket reads a line of /proc/net/tcp or tcp6; the heading is none.
func parseSocket(line string) (socket, bool) {
	const localField, remoteField, uidField, inodeField = 1, 2, 7, 9
	fields := strings.Fields(line)
	if len(fields) <= inodeField {
		return socket{}, false
	}
	local, ok := parseEnd(fields[localField])
	remote, also := parseEnd(fields[remoteField])
	uid, err := strconv.Atoi(fields[uidField])
	return socket{local: local, remote: remote, uid: uid, inode: fields[inodeField]}, ok && also && err == nil
}

// parseEnd reads an address and a port as the kernel writes them: the port in
// hexadecimal digits, the address in words of four bytes in the machine's own
// order.
func parseEnd(text string) (netip.AddrPort, bool) {
	address, port, ok := strings.Cut(text, ":")
	number, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		return netip.AddrPort{}, false
	}
	raw, err := hex.DecodeString(address)
	if err != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for word := range slices.Chunk(raw, 4) {
		binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
	}
	addr, ok := netip.AddrFromSlice(raw)
	return unmapped(netip.AddrPortFrom(addr, uint16(number))), ok
}
