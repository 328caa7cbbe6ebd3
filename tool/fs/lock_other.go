//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package fs

import (
	"context"
	"os"
)

// lockFile does nothing: this system has no lock. Updates are compared in any case.
func lockFile(ctx context.Context, _ string, _ *os.File) error { return ctx.Err() }

func keepOwner(_ *os.File, like os.FileInfo) os.FileMode { return like.Mode().Perm() }
