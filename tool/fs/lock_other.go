//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package fs

import (
	"context"
	"os"
)

// lockFile has no lock to take here; updates are compared all the same.
func lockFile(ctx context.Context, _ string, _ *os.File) error { return ctx.Err() }

func keepOwner(_ *os.File, like os.FileInfo) os.FileMode { return like.Mode().Perm() }
