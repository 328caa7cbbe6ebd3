//go:build !linux || (!amd64 && !arm64)

package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// errSystem is returned for every tier: all need Linux, and the system call filter
// exists for two architectures.
var errSystem = errors.New("sandbox: there is no tier for this system and architecture")

var ownNetwork []int

func openShim() Shim { return Shim{} }

// Hide does nothing on this system.
func Hide() {}

// Adopt does nothing on this system.
func (s Shim) Adopt() Shim { return s }

func killOrphans() {}

func supervise() int { return 1 }

func channel() (ours, theirs *os.File, err error) { return nil, nil, errSystem }

func takeListener(*os.File) (net.Listener, error) { return nil, errSystem }

func stampOf(fs.FileInfo) stamp { return stamp{} }

func totalMemory() int64 { return 0 }

func unshare(*syscall.SysProcAttr, egress.Network) {}

func (m *Machine) probe(context.Context, Tier) error { return errSystem }

func helpFor(Tier, error) string { return "use Linux on amd64 or arm64" }
