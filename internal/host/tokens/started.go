package tokens

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Started is the token of a server that was started without a file of tokens.
type Started struct {
	// Addr is the address that the server listens on.
	Addr  string
	Token string
	// TLS reports whether clients speak HTTPS to it.
	TLS bool
}

// overTLS is the second line of the file of a server with TLS.
const overTLS = "tls"

// Keep writes the token of a server into a directory, in a file that only its user can
// read, until release is called. The process holds a lock on the file while it lives.
// Keep removes files without a lock, whose servers were killed.
func (s Started) Keep(dir string) (release func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	var file *os.File
	err = locked(dir, func() error {
		if _, err := started(dir, true); err != nil {
			return err
		}
		path := filepath.Join(dir, s.Addr)
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		file, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		text := s.Token + "\n"
		if s.TLS {
			text += overTLS + "\n"
		}
		if _, err = file.WriteString(text); err == nil {
			err = lock(file, syscall.LOCK_EX)
		}
		if err != nil {
			err = errors.Join(err, file.Close(), os.Remove(path))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("tokens: keep the token of this start in %s: %w", dir, err)
	}
	return func() error {
		return errors.Join(locked(dir, func() error {
			own, err := file.Stat()
			if now, statErr := os.Stat(file.Name()); err != nil || statErr != nil || !os.SameFile(own, now) {
				return err // another server has this address now
			}
			return os.Remove(file.Name())
		}), file.Close())
	}, nil
}

// ReadStarted returns the tokens in a directory whose servers are running, by address.
func ReadStarted(dir string) (all []Started, err error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	err = locked(dir, func() error {
		all, err = started(dir, false)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("tokens: read the tokens in %s: %w", dir, err)
	}
	return all, nil
}

// started reads the tokens in a directory; with sweep it removes those of servers that
// no longer run. The caller holds the lock of the directory.
func started(dir string, sweep bool) (all []Started, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		text, running, err := readLocked(path)
		switch {
		case err != nil:
			return nil, err
		case running:
			token, how, _ := strings.Cut(text, "\n")
			all = append(all, Started{Addr: entry.Name(), Token: token, TLS: strings.TrimSpace(how) == overTLS})
		case sweep:
			if err := os.Remove(path); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// readLocked reads a file, and reports whether a process holds its lock. If the file
// system has no locks, it reports true.
func readLocked(path string) (text string, held bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	err = lock(f, syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		return "", false, nil
	}
	content, err := os.ReadFile(path)
	return string(content), true, err
}

// lock locks a file if the file system supports that.
func lock(f *os.File, how int) error {
	err := syscall.Flock(int(f.Fd()), how)
	if errors.Is(err, errors.ErrUnsupported) && how&syscall.LOCK_NB == 0 {
		return nil
	}
	return err
}

// locked calls do while it holds the lock of a directory.
func locked(dir string, do func() error) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := lock(d, syscall.LOCK_EX); err != nil {
		return err
	}
	return do()
}
